#include "lib/engine/engine.h"

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "lib/base/canonical_key.h"
#include "lib/base/hash.h"
#include "lib/base/status.h"
#include "lib/engine/float_tables.h"
#include "lib/families/selection.h"
#include "lib/model_config/alibi_note.h"
#include "lib/model_config/places.h"
#include "lib/model_config/position_limit.h"
#include "lib/model_config/profile.h"
#include "lib/model_config/resolve.h"

namespace posenc {
namespace {

// Blocks that streams have done with, for the next ones: enough for a burst.
constexpr size_t kMaxFreeBlockBytes = size_t{32} << 20;

// What a request's source means, before canonicalization.
struct Source {
  v1::EncodingSpec spec;
  std::optional<v1::ResolvedEncoding> encoding;  // of a model
  google::protobuf::RepeatedPtrField<v1::Finding> findings;
};

template <typename Request>
absl::StatusOr<Source> ResolveSource(Request* request) {
  Source source;
  if (request->has_spec()) {
    source.spec = std::move(*request->mutable_spec());
    return source;
  }
  if (!request->has_model()) return FieldError("source", "is required: a spec or a model");
  ASSIGN_OR_RETURN(const v1::ResolveModelConfigResponse resolved,
                   ResolveModelConfig(request->model()));
  ASSIGN_OR_RETURN(source.encoding, OneEncoding(resolved));
  RETURN_IF_ERROR(CheckSelection(*source.encoding, request->selection()));
  source.spec = SpecFor(*source.encoding, request->selection(), request->format().layout());
  source.findings = resolved.findings();
  return source;
}

// A model's table has its own rows and dtype when the request names none.
void FillFromModel(const Family& family, const v1::ResolvedEncoding& encoding,
                   v1::Selection* selection, v1::TensorFormat* format) {
  if (!family.rows_are_positions()) return;
  const int64_t positions = DefaultPositions(encoding);
  if (selection->coordinates_case() == v1::Selection::COORDINATES_NOT_SET && positions > 0) {
    selection->mutable_position_range()->set_begin(0);
    selection->mutable_position_range()->set_end(positions);
  }
  const bool holds_integers = format->layout() == v1::LAYOUT_POSITION_IDS;
  if (format->dtype() == v1::DTYPE_UNSPECIFIED && !holds_integers) {
    if (encoding.dtype() == "bf16") format->set_dtype(v1::DTYPE_BF16);
    if (encoding.dtype() == "f16") format->set_dtype(v1::DTYPE_F16);
  }
}

// The tensors of `shape` by the stack's names.
void RenameTensors(const Profile& profile, const v1::EncodingSpec& spec, TableShape* shape) {
  const auto names = TensorNames(profile, spec, shape->format.layout());
  for (size_t i = 0; i < names.size(); ++i) shape->tensors[i].name = std::string(names[i]);
}

std::string TableId(const CanonicalSpec& spec, const TableShape& shape,
                    absl::string_view numerics_version) {
  return Hash128(absl::StrCat("posenc.table.1;", numerics_version, ";", spec.key(),
                              CanonicalKey(shape.selection), CanonicalKey(shape.format)));
}

// What stands for the spec in the keys of its pages. A spec with a table in it would be
// copied into each of them; so a long one is named by its plan, which was found under
// the whole spec. No field has the number that such a name begins with.
std::string PageKeyOf(const CanonicalSpec& spec, const Plan& plan) {
  constexpr size_t kMaxSpecBytes = 4096;
  if (spec.key().size() <= kMaxSpecBytes) return spec.key();
  return absl::StrCat("\xff\xff\xff\xff", plan.number());
}

void CopyCounters(const CacheCounters& from, v1::CacheStats* to) {
  to->set_bytes(from.bytes);
  to->set_budget_bytes(from.budget_bytes);
  to->set_entries(from.entries);
  to->set_hits(from.hits);
  to->set_misses(from.misses);
  to->set_waits(from.waits);
  to->set_evictions(from.evictions);
}

}  // namespace

// All that is known before any work: the header is complete but for what
// depends on a selection when there is none.
struct Engine::Resolved {
  CanonicalSpec spec;
  std::shared_ptr<const Plan> plan;
  std::optional<TableShape> shape;
  v1::TableHeader header;
};

Engine::Engine(EngineOptions options)
    : options_(options),
      plans_(options.plan_cache_bytes),
      pages_(options.page_cache_bytes),
      pool_(std::make_shared<BlockPool>(options.page_bytes, kMaxFreeBlockBytes)) {}

template <typename Request>
absl::StatusOr<Engine::Resolved> Engine::Resolve(Request* request) {
  const auto id_count = static_cast<uint64_t>(ExplicitCoordinates(request->selection()));
  if (id_count > options_.max_position_ids) {
    return QuotaError("selection",
                      absl::StrCat(id_count, " coordinates exceed max_position_ids (",
                                   options_.max_position_ids, "); ask for a range or a grid"));
  }
  ASSIGN_OR_RETURN(Source source, ResolveSource(request));
  v1::Selection selection = request->selection();
  v1::TensorFormat format = request->format();
  // What a serving stack would take comes before what the model says.
  ASSIGN_OR_RETURN(const Profile* profile,
                   ApplyProfile({.encoding = source.encoding ? &*source.encoding : nullptr,
                                 .spec = &source.spec,
                                 .selection = &selection,
                                 .format = &format,
                                 .findings = &source.findings}));

  absl::StatusOr<CanonicalSpec> canonical = Canonicalize(std::move(source.spec));
  if (!canonical.ok() && source.encoding) return AtConfigKey(canonical.status(), *source.encoding);
  ASSIGN_OR_RETURN(CanonicalSpec spec, std::move(canonical));
  const Family& family = FamilyOf(spec.proto());
  if (source.encoding.has_value()) FillFromModel(family, *source.encoding, &selection, &format);

  v1::TableHeader header;
  *header.mutable_spec() = spec.proto();
  ShortenFloatTables(header.mutable_spec());
  header.set_numerics_version(std::string(family.numerics_version()));
  *header.mutable_findings() = std::move(source.findings);
  if (source.encoding.has_value()) {
    header.set_max_position_embeddings(source.encoding->max_position_embeddings());
  }

  std::optional<TableShape> shape;
  const bool describes_spec_alone =
      std::is_same_v<Request, v1::DescribeTableRequest> &&
      selection.coordinates_case() == v1::Selection::COORDINATES_NOT_SET &&
      request->format().layout() == v1::LAYOUT_UNSPECIFIED;
  if (!describes_spec_alone) {
    ASSIGN_OR_RETURN(shape, family.Resolve(spec, selection, format));
    if (profile != nullptr) RenameTensors(*profile, spec.proto(), &*shape);
    const bool countable = SetTensors(*shape, &header);
    if (!countable || header.total_bytes() > options_.max_table_bytes) {
      return QuotaError(
          "selection",
          absl::StrCat("the table's ",
                       countable ? absl::StrCat(header.total_bytes()) : "more than 2^63",
                       " bytes exceed max_table_bytes (", options_.max_table_bytes,
                       "); ask for fewer positions, or for the vector form"));
    }
    *header.mutable_selection() = shape->selection;
    *header.mutable_format() = shape->format;
    header.set_table_id(TableId(spec, *shape, family.numerics_version()));
    const v1::Layout layout = shape->format.layout();
    if (source.encoding && (layout == v1::LAYOUT_BIAS || layout == v1::LAYOUT_BIAS_VECTOR)) {
      AddAlibiNote(*source.encoding, header.mutable_findings());
    }
  }

  auto plan = plans_.FindOrMake(spec.key(), [&] { return family.MakePlan(spec); });
  header.set_attention_factor(plan->attention_factor());
  return Resolved{std::move(spec), std::move(plan), std::move(shape), std::move(header)};
}

absl::StatusOr<std::unique_ptr<Table>> Engine::GetTable(v1::GetTableRequest request) {
  ASSIGN_OR_RETURN(Resolved resolved, Resolve(&request));
  const std::string& table_id = resolved.header.table_id();
  if (!request.if_table_id().empty() && request.if_table_id() != table_id) {
    return absl::FailedPreconditionError(absl::StrCat("if_table_id: this request's table is ",
                                                      table_id, ", not ",
                                                      absl::CHexEscape(request.if_table_id())));
  }
  if (request.read_offset() > resolved.header.total_bytes()) {
    return absl::OutOfRangeError(absl::StrCat("read_offset: the table has ",
                                              resolved.header.total_bytes(), " bytes, got ",
                                              request.read_offset()));
  }
  std::string page_key = PageKeyOf(resolved.spec, *resolved.plan);
  return std::make_unique<Table>(std::move(resolved.header), *std::move(resolved.shape),
                                 std::move(page_key), std::move(resolved.plan),
                                 PageSource{&pages_, pool_, options_.page_bytes},
                                 request.read_offset());
}

absl::StatusOr<v1::DescribeTableResponse> Engine::DescribeTable(v1::DescribeTableRequest request) {
  ASSIGN_OR_RETURN(Resolved resolved, Resolve(&request));
  v1::DescribeTableResponse response;
  resolved.plan->Describe(&response);
  *response.mutable_header() = std::move(resolved.header);
  return response;
}

absl::StatusOr<v1::ResolveModelConfigResponse> Engine::ResolveModelConfig(
    const v1::ResolveModelConfigRequest& request) {
  ASSIGN_OR_RETURN(v1::ResolveModelConfigResponse response,
                   posenc::ResolveModelConfig(request.model()));
  for (v1::ResolvedEncoding& encoding : *response.mutable_encodings()) {
    if (!encoding.has_spec()) continue;
    const absl::StatusOr<CanonicalSpec> canonical = Canonicalize(encoding.spec());
    if (!canonical.ok()) return AtConfigKey(canonical.status(), encoding);
    const CanonicalSpec& spec = *canonical;
    const Family& family = FamilyOf(spec.proto());
    const auto plan = plans_.FindOrMake(spec.key(), [&] { return family.MakePlan(spec); });
    *encoding.mutable_spec() = spec.proto();
    encoding.set_attention_factor(plan->attention_factor());
  }
  return response;
}

v1::GetServerInfoResponse Engine::GetServerInfo() const {
  v1::GetServerInfoResponse info;
  info.set_version(POSENC_VERSION);
  v1::Limits* limits = info.mutable_limits();
  limits->set_max_table_bytes(options_.max_table_bytes);
  limits->set_max_position_ids(options_.max_position_ids);
  limits->set_chunk_bytes(options_.page_bytes);
  for (const Family* family : AllFamilies()) {
    v1::EncodingInfo* encoding = info.add_encodings();
    encoding->set_family(std::string(family->name()));
    encoding->set_numerics_version(std::string(family->numerics_version()));
    for (const v1::Layout layout : family->layouts()) encoding->add_layouts(layout);
    for (const v1::DType dtype : family->dtypes()) encoding->add_dtypes(dtype);
  }
  for (std::string& type : KnownModelTypes()) info.add_model_types(std::move(type));
  for (absl::string_view name : ProfileNames()) {
    v1::ProfileInfo& profile = *info.add_profiles();
    profile.set_name(std::string(name));
    profile.set_source(std::string(ProfileSource(name)));
  }
  CopyCounters(plans_.counters(), info.mutable_plan_cache());
  CopyCounters(pages_.counters(), info.mutable_page_cache());
  return info;
}

}  // namespace posenc
