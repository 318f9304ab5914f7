// Sources: LayoutLMv2Config, LayoutLMv3Config, UdopConfig and the classes they build;
// reference/hf-rope.md, sections 5.2 and 8.2.
#include "lib/model_config/document_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/bias_rules.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/table_rules.h"

namespace posenc {
namespace {

// A bucket table of some positions, where its switch, on by default, is on.
struct Buckets {
  absl::string_view enabled_key;
  absl::string_view count_key;
  int64_t count;
  absl::string_view distance_key;
  int64_t distance;
  absl::string_view layer_type;
};

absl::Status AddBuckets(const Tower& tower, const Buckets& keys,
                        v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<bool> enabled, ReadBool(tower.keys[keys.enabled_key]));
  if (!enabled.value_or(true)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<int64_t> count, ReadPositiveInt(tower.keys[keys.count_key]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> distance,
                   ReadPositiveInt(tower.keys[keys.distance_key]));
  ASSIGN_OR_RETURN(const int64_t heads, RequiredHeads(tower));
  v1::ResolvedEncoding encoding = T5Encoding(
      tower, {count.value_or(keys.count), distance.value_or(keys.distance), true, false}, heads);
  encoding.set_layer_type(std::string(keys.layer_type));
  AddBucketPlaces(tower.keys, keys.count_key, keys.distance_key, &encoding);
  // v3 adds the bias to scores that it divides with them.
  if (tower.family.table.bias_over_sqrt_head_dim) {
    ASSIGN_OR_RETURN(const int64_t head_dim, HiddenOverHeads(tower));
    encoding.set_bias_scale(1.0 / std::sqrt(static_cast<double>(head_dim)));
  }
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

// UDOP's biases: what relative_bias_args names, and what its class has unless the entry says.
struct UdopBias {
  absl::string_view type;
  absl::string_view layer_type;
  int64_t max_distance;
  double scaling_factor;
};
constexpr std::array kUdopBiases = {
    UdopBias{"1d", "all", 128, 1},
    UdopBias{"horizontal", "horizontal", 100, 100},
    UdopBias{"vertical", "vertical", 100, 100},
};

// Entries of relative_bias_args are arguments of a class, far fewer than this.
constexpr size_t kMaxUdopBiases = 8;

// What changes a bias in ways that no table here has: two more rows for a prefix.
absl::Status CheckUdopEntry(const JsonValue& entry) {
  for (absl::string_view key : {"prefix_bucket", "expand"}) {
    ASSIGN_OR_RETURN(const std::optional<bool> on, ReadBool(entry[key]));
    if (!on.value_or(false)) continue;
    return FieldError(entry[key].field(), "must be false: buckets of a prefix are not known here");
  }
  return absl::OkStatus();
}

absl::Status AddUdopBias(const Tower& tower, const UdopBias& bias, const JsonValue& entry,
                         v1::ResolveModelConfigResponse* response) {
  RETURN_IF_ERROR(CheckUdopEntry(entry));
  ASSIGN_OR_RETURN(const std::optional<int64_t> count,
                   ReadPositiveInt(entry["relative_attention_num_buckets"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> distance, ReadPositiveInt(entry["max_distance"]));
  ASSIGN_OR_RETURN(const std::optional<bool> both, ReadBool(entry["bidirectional"]));
  ASSIGN_OR_RETURN(const std::optional<double> factor, ReadPositiveNumber(entry["scaling_factor"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> heads, NumAttentionHeads(tower));
  v1::ResolvedEncoding encoding = T5Encoding(
      tower, {count.value_or(32), distance.value_or(bias.max_distance), both.value_or(true), false},
      heads.value_or(0));
  encoding.set_tower("encoder");
  encoding.set_layer_type(std::string(bias.layer_type));
  AddBucketPlaces(entry, "relative_attention_num_buckets", "max_distance", &encoding);
  if (bias.scaling_factor == 1) {
    if (factor.value_or(1) != 1) {
      return FieldError(entry["scaling_factor"].field(),
                        absl::StrCat("must be 1 for positions in the text, got ",
                                     entry["scaling_factor"].Text()));
    }
  } else {
    if (factor.value_or(bias.scaling_factor) <= 1) {
      return FieldError(entry["scaling_factor"].field(),
                        absl::StrCat("must be above 1 for coordinates from 0 to 1, got ",
                                     entry["scaling_factor"].Text()));
    }
    encoding.mutable_spec()->mutable_t5()->set_coordinate_scale(
        factor.value_or(bias.scaling_factor));
    encoding.set_variant("box_centers");
  }
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status AddUdopBiases(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  const JsonValue list = tower.keys["relative_bias_args"];
  if (!list.has_value()) {
    for (const UdopBias& bias : kUdopBiases) {
      RETURN_IF_ERROR(AddUdopBias(tower, bias, JsonValue(), response));
    }
    return absl::OkStatus();
  }
  if (!list.is_array() || list.size() > kMaxUdopBiases) {
    return FieldError(list.field(), absl::StrCat("must be a list of at most ", kMaxUdopBiases,
                                                 " objects, got ", list.Describe()));
  }
  for (const JsonValue& entry : list.children()) {
    ASSIGN_OR_RETURN(const std::optional<std::string> type, ReadString(entry["type"]));
    const auto bias = std::find_if(kUdopBiases.begin(), kUdopBiases.end(),
                                   [&](const UdopBias& b) { return b.type == type.value_or(""); });
    if (bias == kUdopBiases.end()) {
      return FieldError(
          entry.FieldOf("type"),
          absl::StrCat("must be 1d, horizontal or vertical, got ", entry["type"].Describe()));
    }
    RETURN_IF_ERROR(AddUdopBias(tower, *bias, entry, response));
  }
  return absl::OkStatus();
}

// A row a coordinate, two tables (x and y), each looked up at both edges of a box.
absl::Status AddUdopCells(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> rows,
                   ReadPositiveInt(tower.keys["max_2d_position_embeddings"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> dim, HiddenSize(tower));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "learned");
  encoding.set_tower("encoder");
  encoding.set_layer_type("boxes");
  v1::LearnedTable& table = *encoding.mutable_learned();
  table.set_rows(rows.value_or(1024));
  table.set_usable(table.rows());
  table.set_dim(dim.value_or(tower.family.hidden_size));
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveLayoutLm(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  RETURN_IF_ERROR(ResolveLearned(tower, response));
  RETURN_IF_ERROR(AddBuckets(
      tower, {"has_relative_attention_bias", "rel_pos_bins", 32, "max_rel_pos", 128, "all"},
      response));
  return AddBuckets(
      tower,
      {"has_spatial_attention_bias", "rel_2d_pos_bins", 64, "max_rel_2d_pos", 256, "spatial"},
      response);
}

absl::Status ResolveUdop(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  RETURN_IF_ERROR(AddUdopBiases(tower, response));
  RETURN_IF_ERROR(AddUdopCells(tower, response));
  return ResolveT5(tower, response);  // the decoder alone
}

}  // namespace posenc
