#include "client/cli/compare_tables.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace posenc::cli {
namespace {

// Divisible by every side of merged squares that is in use.
constexpr int64_t kGridSide = 12;

// Wider heads are no model's; their rows would be megabytes.
constexpr int64_t kMaxHeadDim = 4096;

// A token of M-RoPE, far apart on its axes: no frequency is so low that two of them would round
// to one value.
constexpr std::array<int64_t, 4> kFarApart = {1'000'003, 3'000'017, 7'000'003, 9'000'011};

struct Table {
  v1::TableHeader header;
  std::vector<std::byte> bytes;
};

absl::StatusOr<Table> Get(const Client& client, const v1::GetTableRequest& request) {
  absl::StatusOr<TableReader> reader = client.GetTable(request);
  if (!reader.ok()) return reader.status();
  Table table = {reader->header(), std::vector<std::byte>(reader->header().total_bytes())};
  if (absl::Status status = reader->ReadAll(table.bytes); !status.ok()) return status;
  return table;
}

// The tables of two specs with one selection. Nothing where one of them is refused, or they are of
// different shapes: then there is no row to compare with another.
absl::StatusOr<std::vector<Table>> GetBoth(const Client& client, v1::GetTableRequest request,
                                           const v1::EncodingSpec& base,
                                           const v1::EncodingSpec& model) {
  std::vector<Table> tables;
  for (const v1::EncodingSpec* spec : {&base, &model}) {
    *request.mutable_spec() = *spec;
    absl::StatusOr<Table> table = Get(client, request);
    if (absl::IsInvalidArgument(table.status())) return std::vector<Table>();
    if (!table.ok()) return table.status();
    tables.push_back(*std::move(table));
  }
  if (tables[0].bytes.size() != tables[1].bytes.size()) tables.clear();
  return tables;
}

// Which parts of the tensors differ, where each is cut into `parts` of equal size.
std::vector<bool> Differing(const std::vector<Table>& tables, size_t parts) {
  std::vector<bool> differing(parts);
  for (const v1::TensorInfo& tensor : tables[0].header.tensors()) {
    const size_t part_bytes = tensor.bytes() / parts;
    for (size_t part = 0; part < parts; ++part) {
      const size_t at = tensor.offset() + part * part_bytes;
      if (std::memcmp(&tables[0].bytes[at], &tables[1].bytes[at], part_bytes) != 0) {
        differing[part] = true;
      }
    }
  }
  return differing;
}

v1::EncodingSpec MropeSpec(const v1::RopeSpec& rope, const v1::MropeSections& sections) {
  v1::EncodingSpec spec;
  v1::MropeSpec& mrope = *spec.mutable_mrope();
  *mrope.mutable_rope() = rope;
  *mrope.mutable_mrope_section() = sections.sections();
  v1::MropeScheme scheme = v1::MROPE_SCHEME_UNSPECIFIED;
  const std::string name = absl::StrCat("MROPE_SCHEME_", absl::AsciiStrToUpper(sections.scheme()));
  if (v1::MropeScheme_Parse(name, &scheme)) mrope.set_scheme(scheme);
  return spec;
}

}  // namespace

absl::StatusOr<std::string> GridEffect(const Client& client, const v1::EncodingSpec& base,
                                       const v1::EncodingSpec& model) {
  if (std::max(base.axial_rope().head_dim(), model.axial_rope().head_dim()) > kMaxHeadDim)
    return "";
  v1::GetTableRequest request;
  request.mutable_selection()->mutable_patch_grid()->set_height(kGridSide);
  request.mutable_selection()->mutable_patch_grid()->set_width(kGridSide);
  // The same base in both: what it does by itself is said elsewhere.
  v1::EncodingSpec ordered = model;
  ordered.mutable_axial_rope()->set_rope_theta(base.axial_rope().rope_theta());
  const absl::StatusOr<std::vector<Table>> tables = GetBoth(client, request, base, ordered);
  if (!tables.ok()) return tables.status();
  if (tables->empty()) return "";
  const int64_t rows = tables->front().header.tensors(0).shape(0);
  const std::vector<bool> differing = Differing(*tables, static_cast<size_t>(rows));
  const auto count = std::count(differing.begin(), differing.end(), true);
  if (count == 0) return "";
  return absl::StrCat(count, " of the ", rows, " rows of a ", kGridSide, "x", kGridSide,
                      " grid differ");
}

absl::StatusOr<std::string> AxisEffect(const Client& client, const v1::ResolvedEncoding& base,
                                       const v1::ResolvedEncoding& model) {
  const int axes = base.mrope().sections_size();
  if (axes == 0 || axes != model.mrope().sections_size() ||
      axes > static_cast<int>(kFarApart.size())) {
    return "";
  }
  v1::GetTableRequest request;
  for (int axis = 0; axis < axes; ++axis) {
    request.mutable_selection()->mutable_axis_position_ids()->add_axes()->add_ids(
        kFarApart[static_cast<size_t>(axis)]);
  }
  // The only layout of all schemes; a channel is turned by one axis.
  request.mutable_format()->set_layout(v1::LAYOUT_COS_AND_SIN_FULL);
  request.mutable_format()->set_dtype(v1::DTYPE_F64);
  // The same frequencies in both: what they do by themselves is said elsewhere.
  const v1::RopeSpec& rope = base.spec().rope();
  const absl::StatusOr<std::vector<Table>> tables =
      GetBoth(client, request, MropeSpec(rope, base.mrope()), MropeSpec(rope, model.mrope()));
  if (!tables.ok()) return tables.status();
  if (tables->empty()) return "";
  const std::vector<bool> differing = Differing(*tables, static_cast<size_t>(rope.rotary_dim()));
  const auto count = std::count(differing.begin(), differing.end(), true);
  if (count == 0) return "";
  const auto first = std::find(differing.begin(), differing.end(), true) - differing.begin();
  return absl::StrCat(count, " of ", rope.rotary_dim(),
                      " channels turn by another axis, from channel ", first);
}

}  // namespace posenc::cli
