// Row ids of learned position tables: which row of its model's table a token takes.
//
//   POSITION_IDS  position_ids, i32: [R] where ids follow from positions alone,
//                 [B, L] where padding decides
//
// Padding, past tokens and offsets are counted as each family of models counts them;
// an id past the last row is refused here, since in a model it is a crash or a read
// of something else. The rules: learned.proto; reference/other-encodings.md, 5.1.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/selection.h"
#include "lib/families/sequences.h"

namespace posenc {
namespace {

using v1::PositionIdsSpec;

constexpr int64_t kMaxRow = int64_t{1} << 30;  // ids fit an int32

// Canonicalize -----------------------------------------------------------------

// A field that only some rules have: its default there, nothing elsewhere.
absl::Status CheckOffset(PositionIdsSpec* spec) {
  const bool sequential = spec->rule() == v1::POSITION_ID_RULE_SEQUENTIAL;
  if (!sequential && spec->rule() != v1::POSITION_ID_RULE_MASKED) {
    return spec->has_offset() ? FieldError("position_ids.offset", "this rule has none")
                              : absl::OkStatus();
  }
  if (!spec->has_offset()) spec->set_offset(sequential ? 0 : 2);
  // Padding takes the row before the offset.
  return CheckInRange("position_ids.offset", spec->offset(), sequential ? 0 : 1, kMaxRow);
}

absl::Status CheckPaddingIndex(PositionIdsSpec* spec) {
  const bool non_padding = spec->rule() == v1::POSITION_ID_RULE_NON_PADDING;
  if (!non_padding && spec->rule() != v1::POSITION_ID_RULE_INDEX_FROM_ONE) {
    return spec->has_padding_index()
               ? FieldError("position_ids.padding_index", "this rule has none")
               : absl::OkStatus();
  }
  if (!spec->has_padding_index()) spec->set_padding_index(non_padding ? 1 : 0);
  return CheckInRange("position_ids.padding_index", spec->padding_index(), 0, kMaxRow);
}

absl::Status CheckPadPosition(PositionIdsSpec* spec) {
  if (spec->rule() != v1::POSITION_ID_RULE_GENERATE) {
    return spec->has_pad_position() ? FieldError("position_ids.pad_position", "this rule has none")
                                    : absl::OkStatus();
  }
  if (!spec->has_pad_position()) spec->set_pad_position(0);
  return CheckInRange("position_ids.pad_position", spec->pad_position(), 0, kMaxRow);
}

// The row of the first token of a sequence.
int64_t FirstRow(const PositionIdsSpec& spec) {
  switch (spec.rule()) {
    case v1::POSITION_ID_RULE_NON_PADDING:
      return spec.padding_index() + 1;
    case v1::POSITION_ID_RULE_INDEX_FROM_ONE:
      return 1;
    case v1::POSITION_ID_RULE_GENERATE:
      return 0;
    default:  // SEQUENTIAL, MASKED
      return spec.offset();
  }
}

absl::Status CanonicalizePositionIds(PositionIdsSpec* spec) {
  RETURN_IF_ERROR(
      CheckEnum("position_ids.rule", v1::PositionIdRule_IsValid(spec->rule()), spec->rule()));
  if (spec->rule() == v1::POSITION_ID_RULE_UNSPECIFIED) {
    spec->set_rule(v1::POSITION_ID_RULE_SEQUENTIAL);
  }
  RETURN_IF_ERROR(CheckOffset(spec));
  RETURN_IF_ERROR(CheckPaddingIndex(spec));
  RETURN_IF_ERROR(CheckPadPosition(spec));
  if (!spec->has_table_rows()) return absl::OkStatus();
  // At least one position must be usable.
  return CheckInRange("position_ids.table_rows", spec->table_rows(), FirstRow(*spec) + 1, kMaxRow);
}

// Values -----------------------------------------------------------------------

// The ids of one sequence, `past` tokens before it; MASKED gets the past's mask too
// and gives ids for it.
std::vector<int64_t> IdsOfSequence(const PositionIdsSpec& spec, int64_t past,
                                   std::span<const int64_t> values) {
  std::vector<int64_t> ids;
  ids.reserve(values.size());
  int64_t count = 0;  // of tokens that are no padding
  for (const int64_t value : values) {
    switch (spec.rule()) {
      case v1::POSITION_ID_RULE_MASKED:
        count += value;
        ids.push_back(count * value - 1 + spec.offset());
        break;
      case v1::POSITION_ID_RULE_GENERATE:
        count += value;
        ids.push_back(value == 0 ? spec.pad_position() : count - 1);
        break;
      case v1::POSITION_ID_RULE_NON_PADDING: {
        const bool is_token = value != spec.padding_index();
        count += is_token ? 1 : 0;
        ids.push_back((is_token ? count + past : 0) + spec.padding_index());
        break;
      }
      default: {  // INDEX_FROM_ONE
        ++count;
        ids.push_back(value == spec.padding_index() ? 0 : count);
      }
    }
  }
  return ids;
}

bool ReadsMask(const PositionIdsSpec& spec) {
  return spec.rule() == v1::POSITION_ID_RULE_MASKED || spec.rule() == v1::POSITION_ID_RULE_GENERATE;
}

// Of MASKED the mask covers past tokens, for which no ids are given back.
int64_t SkippedTokens(const PositionIdsSpec& spec, const v1::Sequences& sequences) {
  return spec.rule() == v1::POSITION_ID_RULE_MASKED ? sequences.past_length() : 0;
}

std::vector<int64_t> IdsOfSequence(const PositionIdsSpec& spec, const v1::Sequences& sequences,
                                   int64_t sequence) {
  const auto length = static_cast<size_t>(sequences.length());
  const std::span<const int64_t> values(sequences.values().data() + sequence * sequences.length(),
                                        length);
  std::vector<int64_t> ids = IdsOfSequence(spec, sequences.past_length(), values);
  ids.erase(ids.begin(), ids.begin() + SkippedTokens(spec, sequences));
  return ids;
}

class PositionIdsPlan final : public Plan {
 public:
  explicit PositionIdsPlan(PositionIdsSpec spec) : spec_(std::move(spec)) {}

  size_t bytes() const override { return sizeof(*this); }

  void Fill(const TableShape& shape, size_t, int64_t begin,
            std::span<std::byte> out) const override {
    if (shape.selection.has_sequences()) {
      FillSequences(shape.selection.sequences(), begin, out);
    } else {
      FillSequential(shape.selection, begin, out);
    }
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    if (spec_.has_table_rows()) {
      response->set_usable_positions(spec_.table_rows() - FirstRow(spec_));
    }
  }

 private:
  void FillSequential(const v1::Selection& selection, int64_t begin,
                      std::span<std::byte> out) const {
    for (size_t i = 0; i < out.size() / sizeof(int32_t); ++i) {
      Store(PositionAt(selection, begin + static_cast<int64_t>(i)) + spec_.offset(), i, out);
    }
  }

  // A sequence at a time, from its first token on: an id counts what is before it.
  void FillSequences(const v1::Sequences& sequences, int64_t begin,
                     std::span<std::byte> out) const {
    const int64_t length = sequences.length() - SkippedTokens(spec_, sequences);
    for (size_t i = 0; i < out.size() / sizeof(int32_t);) {
      const int64_t element = begin + static_cast<int64_t>(i);
      const std::vector<int64_t> ids = IdsOfSequence(spec_, sequences, element / length);
      for (auto id = ids.begin() + element % length;
           id != ids.end() && i < out.size() / sizeof(int32_t); ++id) {
        Store(*id, i++, out);
      }
    }
  }

  static void Store(int64_t id, size_t index, std::span<std::byte> out) {
    const auto id32 = static_cast<int32_t>(id);
    std::memcpy(out.data() + index * sizeof(id32), &id32, sizeof(id32));
  }

  const PositionIdsSpec spec_;
};

// Shapes -----------------------------------------------------------------------

absl::Status CheckRow(const PositionIdsSpec& spec, const std::string& where, int64_t row) {
  const int64_t rows = spec.has_table_rows() ? spec.table_rows() : int64_t{INT32_MAX} + 1;
  if (row < rows) return absl::OkStatus();
  if (!spec.has_table_rows())
    return FieldError(where, absl::StrCat("takes row ", row, ", ids are 32 bits"));
  return FieldError(
      where, absl::StrCat("takes row ", row, ", past the last of position_ids.table_rows (", rows,
                          "); ", rows - FirstRow(spec), " positions are usable"));
}

// Names the first position that has no row.
absl::Status CheckPositions(const PositionIdsSpec& spec, const Positions& positions) {
  if (positions.selection.has_position_range()) {
    if (positions.count == 0) return absl::OkStatus();
    const int64_t last = positions.origin + positions.count - 1;
    return CheckRow(spec, "selection.position_range.end", last + spec.offset());
  }
  const auto& ids = positions.selection.position_ids().ids();
  for (int i = 0; i < ids.size(); ++i) {
    RETURN_IF_ERROR(CheckRow(spec, absl::StrCat("selection.position_ids.ids[", i, "]"),
                             ids[i] + spec.offset()));
  }
  return absl::OkStatus();
}

absl::Status CheckSequences(const PositionIdsSpec& spec, const v1::Sequences& sequences) {
  if (ReadsMask(spec)) {
    for (int i = 0; i < sequences.values_size(); ++i) {
      RETURN_IF_ERROR(CheckInRange(absl::StrCat("selection.sequences.values[", i, "]"),
                                   sequences.values(i), 0, 1));
    }
  }
  if (SkippedTokens(spec, sequences) > sequences.length()) {
    return FieldError("selection.sequences.past_length",
                      absl::StrCat("the mask covers past tokens too: must be at most length (",
                                   sequences.length(), "), got ", sequences.past_length()));
  }
  for (int64_t sequence = 0; sequence < sequences.batch_size(); ++sequence) {
    const std::vector<int64_t> ids = IdsOfSequence(spec, sequences, sequence);
    if (ids.empty()) continue;
    RETURN_IF_ERROR(CheckRow(spec, absl::StrCat("selection.sequences: sequence ", sequence),
                             *std::max_element(ids.begin(), ids.end())));
  }
  return absl::OkStatus();
}

class PositionIdsFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "position_ids"; }
  absl::string_view numerics_version() const override { return "position_ids-1"; }
  bool rows_are_positions() const override { return true; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_POSITION_IDS}; }
  std::vector<v1::DType> dtypes() const override { return {v1::DTYPE_I32}; }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizePositionIds(spec->mutable_position_ids());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const PositionIdsSpec& rule = spec.proto().position_ids();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    Tensor tensor{.name = "position_ids", .dtype = v1::DTYPE_I32, .shape = {}, .unit = 1};
    if (rule.rule() == v1::POSITION_ID_RULE_SEQUENTIAL) {
      ASSIGN_OR_RETURN(Positions positions, ResolvePositions(selection, /*min_position=*/0));
      RETURN_IF_ERROR(CheckPositions(rule, positions));
      tensor.shape = {positions.count};
      tensor.origin = positions.origin;
      shape.selection = std::move(positions.selection);
      shape.coordinates_key = std::move(positions.coordinates_key);
    } else {
      ASSIGN_OR_RETURN(
          ResolvedSequences sequences,
          ResolveSequences(selection,
                           {.past_length = rule.rule() == v1::POSITION_ID_RULE_MASKED ||
                                           rule.rule() == v1::POSITION_ID_RULE_NON_PADDING}));
      RETURN_IF_ERROR(CheckSequences(rule, sequences.selection.sequences()));
      tensor.shape = {sequences.batch_size,
                      sequences.length - SkippedTokens(rule, sequences.selection.sequences())};
      shape.selection = std::move(sequences.selection);
      shape.coordinates_key = std::move(sequences.coordinates_key);
    }
    shape.tensors.push_back(std::move(tensor));
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<PositionIdsPlan>(spec.proto().position_ids());
  }
};

}  // namespace

const Family& PositionIdsFamily() {
  static const PositionIdsFamilyImpl family;
  return family;
}

}  // namespace posenc
