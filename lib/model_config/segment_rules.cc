// Sources: Sam2VisionConfig, Sam2HieraDetConfig, Sam3VisionConfig, Sam3ViTConfig and the classes
// they build; reference/hf-rope.md, section 3.4.
#include "lib/model_config/segment_rules.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/axial_rules.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

// Of the classes, where the file has none.
constexpr std::array<int64_t, 4> kSam3GlobalLayers = {7, 15, 23, 31};
constexpr int64_t kSam3Window = 24;
constexpr int64_t kNeckWidth = 256;

v1::ResolvedEncoding LearnedGrid(const Tower& tower, absl::string_view layer_type, int64_t rows,
                                 int64_t columns, int64_t dim) {
  v1::ResolvedEncoding encoding = NewEncoding(tower, "learned_2d");
  encoding.set_layer_type(std::string(layer_type));
  v1::LearnedTable& table = *encoding.mutable_learned();
  table.set_rows(rows * columns);
  table.set_usable(rows * columns);
  table.set_dim(dim);
  table.add_grid(rows);
  table.add_grid(columns);
  return encoding;
}

// Sides of a grid, each from 1 to kMaxGridSide.
absl::StatusOr<std::vector<int64_t>> GridSides(const Tower& tower, absl::string_view key,
                                               int64_t by_class) {
  ASSIGN_OR_RETURN(std::vector<int64_t> sides, ReadSides(tower.keys[key]));
  if (sides.empty()) sides.assign(2, by_class);
  for (const int64_t side : sides) {
    if (side <= kMaxGridSide) continue;
    return FieldError(tower.keys.FieldOf(key),
                      absl::StrCat("must be at most ", kMaxGridSide, " a side, got ", side));
  }
  return sides;
}

// image_size / patch_size.
absl::StatusOr<std::vector<int64_t>> Patches(const Tower& tower, absl::string_view image_key,
                                             int64_t image_size) {
  ASSIGN_OR_RETURN(std::vector<int64_t> image, ReadSides(tower.keys[image_key]));
  ASSIGN_OR_RETURN(std::vector<int64_t> patch, ReadSides(tower.keys["patch_size"]));
  if (image.empty()) image.assign(2, image_size);
  if (patch.empty()) patch.assign(2, tower.family.table.patch_size);
  const std::vector<int64_t> grid = {image[0] / patch[0], image[1] / patch[1]};
  for (const int64_t side : grid) {
    if (side >= 1 && side <= kMaxGridSide) continue;
    return FieldError(
        tower.keys.FieldOf(image_key),
        absl::StrCat("gives ", side, " patches a side, must be from 1 to ", kMaxGridSide));
  }
  return grid;
}

// Whether each layer attends across windows. Numbers of layers that the model has not name none.
absl::StatusOr<std::vector<bool>> GlobalLayers(const Tower& tower) {
  std::vector<int64_t> numbers(kSam3GlobalLayers.begin(), kSam3GlobalLayers.end());
  if (const JsonValue list = tower.keys["global_attn_indexes"]; list.has_value()) {
    ASSIGN_OR_RETURN(numbers, ReadInts(list));
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> count, NumLayers(tower));
  std::vector<bool> global(static_cast<size_t>(count.value_or(0)));
  for (const int64_t number : numbers) {
    if (number < count.value_or(0)) global[static_cast<size_t>(number)] = true;
  }
  return global;
}

// The rule of a backbone, null where it is none of SAM's.
const ModelFamily* FindBackbone(absl::string_view model_type) {
  const ModelFamily* family = FindVisionFamily(model_type);
  if (family == nullptr) return nullptr;
  return family->kind == Kind::kSam2Hiera || family->kind == Kind::kSam3Vit ? family : nullptr;
}

}  // namespace

absl::Status ResolveSamVision(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  const JsonValue backbone = tower.keys["backbone_config"];
  ASSIGN_OR_RETURN(const std::optional<std::string> type, ReadString(backbone["model_type"]));
  const ModelFamily* family = FindBackbone(type.value_or(""));
  if (family == nullptr) {
    tower.findings.AddMissing(
        Rule::kTowerUnknown, tower.keys, "backbone_config",
        {.message = absl::StrCat("The positions of this backbone (model_type \"", type.value_or(""),
                                 "\") are not known here; it is left out."),
         .found = type.value_or("")});
  } else {
    const Tower encoder = {tower.name, backbone, *family, true, tower.model, tower.findings};
    RETURN_IF_ERROR(family->kind == Kind::kSam3Vit ? ResolveSam3Vit(encoder, response)
                                                   : ResolveSam2Hiera(encoder, response));
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> width,
                   ReadPositiveInt(tower.keys["fpn_hidden_size"]));
  if (width.has_value() && (*width < 4 || *width % 4 != 0)) {
    return FieldError(tower.keys["fpn_hidden_size"].field(),
                      absl::StrCat("must be a multiple of 4 to hold sines and cosines of two axes, "
                                   "got ",
                                   *width));
  }
  v1::ResolvedEncoding neck = NewEncoding(tower, "sine_2d");
  neck.set_tower("neck");
  v1::DetrSineSpec& sine = *neck.mutable_spec()->mutable_detr_sine();
  sine.set_preset(v1::DETR_PRESET_DETR);
  sine.set_num_position_features(width.value_or(kNeckWidth) / 2);
  *response->add_encodings() = std::move(neck);
  return absl::OkStatus();
}

absl::Status ResolveSam2Hiera(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> background,
                   GridSides(tower, "window_positional_embedding_background_size", 7));
  std::vector<int64_t> windows = {8};
  if (const JsonValue list = tower.keys["window_size_per_stage"]; list.truthy()) {
    ASSIGN_OR_RETURN(windows, ReadInts(list));
    if (windows[0] < 1 || windows[0] > kMaxGridSide) {
      return FieldError(list.field(), absl::StrCat("must begin with a side from 1 to ",
                                                   kMaxGridSide, ", got ", windows[0]));
    }
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> dim, HiddenSize(tower));
  *response->add_encodings() =
      LearnedGrid(tower, "background", background[0], background[1], dim.value_or(0));
  *response->add_encodings() =
      LearnedGrid(tower, "window", windows[0], windows[0], dim.value_or(0));
  return absl::OkStatus();
}

absl::Status ResolveSam3Vit(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> given, ReadPositiveInt(tower.keys["window_size"]));
  const int64_t window = given.value_or(kSam3Window);
  ASSIGN_OR_RETURN(const std::vector<int64_t> image,
                   Patches(tower, "image_size", tower.family.table.image_size));
  ASSIGN_OR_RETURN(const std::vector<bool> is_global, GlobalLayers(tower));
  const int before = response->encodings_size();
  RETURN_IF_ERROR(ResolveAxialRope(tower, response));
  v1::ResolvedEncoding& in_window = *response->mutable_encodings(before);
  v1::ResolvedEncoding global = in_window;
  in_window.set_layer_type("window_attention");
  global.set_layer_type("global_attention");
  for (size_t i = 0; i < is_global.size(); ++i) {
    (is_global[i] ? global : in_window).add_layers(static_cast<int64_t>(i));
  }
  // Rows and columns alike, by the rows.
  global.mutable_spec()->mutable_axial_rope()->set_coordinate_scale(static_cast<double>(window) /
                                                                    static_cast<double>(image[0]));
  *response->add_encodings() = std::move(global);
  ASSIGN_OR_RETURN(const std::vector<int64_t> trained, Patches(tower, "pretrain_image_size", 336));
  ASSIGN_OR_RETURN(const std::optional<int64_t> dim, HiddenSize(tower));
  v1::ResolvedEncoding learned = LearnedGrid(tower, "all", trained[0], trained[1], dim.value_or(0));
  learned.set_variant("tiled");
  *response->add_encodings() = std::move(learned);
  return absl::OkStatus();
}

}  // namespace posenc
