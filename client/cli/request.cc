#include "client/cli/request.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/exit_code.h"
#include "client/cli/input.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/table_input.h"

namespace posenc::cli {
namespace {

absl::StatusOr<v1::ModelSource> Model(const Arguments& arguments) {
  absl::StatusOr<v1::Arithmetic> arithmetic = ParseArithmetic(arguments.arithmetic);
  if (!arithmetic.ok()) return arithmetic.status();
  absl::StatusOr<v1::Compat> compat = ParseCompat(arguments.compat);
  if (!compat.ok()) return compat.status();
  absl::StatusOr<std::string> config_json = ReadModel(*arguments.config);
  if (!config_json.ok()) return config_json.status();
  v1::ModelSource model;
  model.set_config_json(*std::move(config_json));
  model.set_tower(arguments.tower);
  model.set_layer_type(arguments.layer_type);
  if (arguments.sequence_length) model.set_sequence_length(*arguments.sequence_length);
  model.set_arithmetic(*arithmetic);
  model.set_compat(*compat);
  model.set_overrides_json(arguments.hf_overrides);
  return model;
}

absl::Status SetPositions(const std::string& text, v1::PositionRange* range) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  int64_t begin = 0;
  int64_t end = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &begin) ||
      !absl::SimpleAtoi(parts[1], &end)) {
    return UsageError(absl::StrCat("--positions: must be B:E, two 64-bit integers, got ", text));
  }
  range->set_begin(begin);
  range->set_end(end);
  return absl::OkStatus();
}

absl::Status SetPositionIds(const std::string& text, v1::PositionIds* ids) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t id = 0;
    if (!absl::SimpleAtoi(part, &id)) {
      return UsageError(
          absl::StrCat("--position-ids: must be 64-bit integers with commas, got ", text));
    }
    ids->add_ids(id);
  }
  return absl::OkStatus();
}

absl::Status SetGrid(const std::string& text, v1::PatchGrid* grid) {
  std::vector<int64_t> sides;
  bool numbers = true;
  for (const absl::string_view part : absl::StrSplit(text, 'x')) {
    numbers = absl::SimpleAtoi(part, &sides.emplace_back()) && numbers;
  }
  if (!numbers || sides.size() < 2 || sides.size() > 3) {
    return UsageError(absl::StrCat("--grid: must be HxW or TxHxW, 64-bit integers, got ", text));
  }
  if (sides.size() == 3) grid->set_frames(sides.front());
  grid->set_height(sides[sides.size() - 2]);
  grid->set_width(sides.back());
  return absl::OkStatus();
}

absl::Status SetSelection(const Arguments& arguments, v1::Selection* selection) {
  if (arguments.grid) return SetGrid(*arguments.grid, selection->mutable_patch_grid());
  if (arguments.selection) {
    const absl::StatusOr<std::string> json = ReadSpec(*arguments.selection);
    if (!json.ok()) return json.status();
    return FromJson(*json, "selection", selection);
  }
  if (arguments.positions) {
    return SetPositions(*arguments.positions, selection->mutable_position_range());
  }
  if (arguments.position_ids) {
    return SetPositionIds(*arguments.position_ids, selection->mutable_position_ids());
  }
  if (!arguments.query_length) return absl::OkStatus();
  v1::AttentionGrid* grid = selection->mutable_attention_grid();
  grid->set_query_length(*arguments.query_length);
  grid->set_key_length(*arguments.key_length);
  if (arguments.query_offset) grid->set_query_offset(*arguments.query_offset);
  return absl::OkStatus();
}

absl::Status SetFormat(const Arguments& arguments, v1::TensorFormat* format) {
  const absl::StatusOr<v1::DType> dtype = ParseDType(arguments.dtype);
  if (!dtype.ok()) return dtype.status();
  const absl::StatusOr<v1::Layout> layout = ParseLayout(arguments.layout);
  if (!layout.ok()) return layout.status();
  absl::StatusOr<std::string> profile = ParseProfile(arguments.profile);
  if (!profile.ok()) return profile.status();
  format->set_dtype(*dtype);
  format->set_layout(*layout);
  format->set_profile(*std::move(profile));
  if (arguments.rows) format->set_max_model_len(*arguments.rows);
  return absl::OkStatus();
}

template <typename Request>
absl::Status SetSource(const Arguments& arguments, Request* request) {
  if (arguments.config) {
    absl::StatusOr<v1::ModelSource> model = Model(arguments);
    if (!model.ok()) return model.status();
    *request->mutable_model() = *std::move(model);
    return absl::OkStatus();
  }
  if (!arguments.spec) return UsageError("--spec or --config is required");
  const absl::StatusOr<std::string> json = ReadSpec(*arguments.spec);
  if (!json.ok()) return json.status();
  absl::Status status = FromJson(*json, "spec", request->mutable_spec());
  for (const std::string& table : arguments.tables) {
    if (status.ok()) status = ReadTableInto(table, request->mutable_spec());
  }
  return status;
}

// Both requests have source, selection and format. Typing errors come before
// files are opened.
template <typename Request>
absl::StatusOr<Request> Fill(const Arguments& arguments) {
  Request request;
  if (absl::Status status = SetFormat(arguments, request.mutable_format()); !status.ok()) {
    return status;
  }
  if (absl::Status status = SetSelection(arguments, request.mutable_selection()); !status.ok()) {
    return status;
  }
  if (absl::Status status = SetSource(arguments, &request); !status.ok()) return status;
  return request;
}

}  // namespace

absl::StatusOr<v1::GetTableRequest> TableRequest(const Arguments& arguments) {
  return Fill<v1::GetTableRequest>(arguments);
}

absl::StatusOr<v1::DescribeTableRequest> DescribeRequest(const Arguments& arguments) {
  return Fill<v1::DescribeTableRequest>(arguments);
}

absl::StatusOr<v1::ResolveModelConfigRequest> ResolveRequest(const Arguments& arguments) {
  absl::StatusOr<v1::ModelSource> model = Model(arguments);
  if (!model.ok()) return model.status();
  v1::ResolveModelConfigRequest request;
  *request.mutable_model() = *std::move(model);
  return request;
}

}  // namespace posenc::cli
