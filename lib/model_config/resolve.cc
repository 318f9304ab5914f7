#include "lib/model_config/resolve.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/base/status.h"
#include "lib/model_config/axial_rules.h"
#include "lib/model_config/bias_rules.h"
#include "lib/model_config/choice_rules.h"
#include "lib/model_config/document_rules.h"
#include "lib/model_config/family_table.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/findings.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/misspelt_keys.h"
#include "lib/model_config/places.h"
#include "lib/model_config/relative_rules.h"
#include "lib/model_config/rope_rules.h"
#include "lib/model_config/segment_rules.h"
#include "lib/model_config/speech_rules.h"
#include "lib/model_config/table_rules.h"
#include "lib/model_config/tower.h"

namespace posenc {
namespace {

using Response = v1::ResolveModelConfigResponse;

// The file, with the overrides merged over it. Half of one scaling and half of
// another is never meant, so a scaling is replaced whole.
absl::StatusOr<std::unique_ptr<JsonDocument>> ParseModel(const v1::ModelSource& model) {
  ASSIGN_OR_RETURN(std::unique_ptr<JsonDocument> document,
                   JsonDocument::Parse(model.config_json(), "config_json"));
  if (!model.overrides_json().empty()) {
    RETURN_IF_ERROR(WithPlace(document->Overlay(model.overrides_json(), "overrides_json",
                                                {"rope_scaling", "rope_parameters"}),
                              document->root()));
  }
  return document;
}

absl::Status ResolveTower(const Tower& tower, Response* response) {
  switch (tower.family.kind) {
    case Kind::kRope:
      return ResolveRope(tower, response);
    case Kind::kAxialRope:
      return ResolveAxialRope(tower, response);
    case Kind::kSamVision:
      return ResolveSamVision(tower, response);
    case Kind::kSam2Hiera:
      return ResolveSam2Hiera(tower, response);
    case Kind::kSam3Vit:
      return ResolveSam3Vit(tower, response);
    case Kind::kBloom:
      return ResolveBloom(tower, response);
    case Kind::kMpt:
      return ResolveMpt(tower, response);
    case Kind::kFalcon:
      return ResolveFalcon(tower, response);
    case Kind::kBaichuan:
      return ResolveBaichuan(tower, response);
    case Kind::kBert:
      return ResolveBert(tower, response);
    case Kind::kEsm:
      return ResolveEsm(tower, response);
    case Kind::kLearned:
      return ResolveLearned(tower, response);
    case Kind::kLearnedGrid:
      return ResolveLearnedGrid(tower, response);
    case Kind::kT5:
      return ResolveT5(tower, response);
    case Kind::kLongT5:
      return ResolveLongT5(tower, response);
    case Kind::kMpnet:
      return ResolveMpnet(tower, response);
    case Kind::kSinusoidal:
      return ResolveSinusoidal(tower, response);
    case Kind::kWhisper:
      return ResolveWhisper(tower, response);
    case Kind::kWhisperEncoder:
      return ResolveWhisperEncoder(tower, response);
    case Kind::kDeberta:
      return ResolveDeberta(tower, response);
    case Kind::kXlnet:
      return ResolveXlnet(tower, response);
    case Kind::kBeit:
      return ResolveBeit(tower, response);
    case Kind::kSwin:
      return ResolveSwin(tower, response);
    case Kind::kGroundingDino:
      return ResolveGroundingDino(tower, response);
    case Kind::kConvolution:
      return ResolveConvolution(tower, response);
    case Kind::kWavlm:
      return ResolveWavlm(tower, response);
    case Kind::kConformer:
      return ResolveConformer(tower, response);
    case Kind::kTrocr:
      return ResolveTrocr(tower, response);
    case Kind::kLayoutLm:
      return ResolveLayoutLm(tower, response);
    case Kind::kUdop:
      return ResolveUdop(tower, response);
    case Kind::kSeamless:
      return ResolveSeamless(tower, response);
    case Kind::kSpeechT5:
      return ResolveSpeechT5(tower, response);
    case Kind::kChunkDistances:
      return ResolveChunkDistances(tower, response);
    case Kind::kCogVideoX:
      return ResolveCogVideoX(tower, response);
    case Kind::kNone:
      return ResolveNone(tower, response);
  }
  return absl::InternalError("model_config: a kind without a rule");
}

// A number of positions, checked whatever the encoding: most do not depend on it.
absl::Status CheckSequenceLength(const v1::ModelSource& model) {
  constexpr int64_t kMaxLength = int64_t{1} << 31;  // that of the scalings that do
  const int64_t length = model.sequence_length();
  if (!model.has_sequence_length() || (length >= 1 && length <= kMaxLength)) {
    return absl::OkStatus();
  }
  return FieldError("sequence_length",
                    absl::StrCat("must be in [1, ", kMaxLength, "], got ", length));
}

// As the wire names it; empty for what is no dtype of a table (float8, auto).
std::string DTypeName(absl::string_view name) {
  absl::ConsumePrefix(&name, "torch.");
  if (name == "float32" || name == "float") return "f32";
  if (name == "float16" || name == "half") return "f16";
  if (name == "bfloat16") return "bf16";
  return "";
}

constexpr absl::string_view kDTypeKeys = "dtype torch_dtype";

absl::StatusOr<std::string> CheckpointDType(const JsonValue& keys, const JsonValue& config) {
  for (const JsonValue& object : {keys, config}) {
    ASSIGN_OR_RETURN(const std::optional<std::string> name,
                     ReadString(FirstOf(object, kDTypeKeys)));
    if (name.has_value()) return DTypeName(*name);
  }
  return "";
}

std::vector<std::string> Names(const Response& response,
                               const std::string& (v1::ResolvedEncoding::*name)() const) {
  std::vector<std::string> names;
  for (const v1::ResolvedEncoding& encoding : response.encodings()) {
    const std::string& value = (encoding.*name)();
    if (std::find(names.begin(), names.end(), value) == names.end()) names.push_back(value);
  }
  return names;
}

// Keeps the encodings with this name; an empty one keeps all.
absl::Status Narrow(absl::string_view field, const std::string& wanted,
                    const std::string& (v1::ResolvedEncoding::*name)() const, Response* response) {
  if (wanted.empty()) return absl::OkStatus();
  const std::vector<std::string> names = Names(*response, name);
  if (std::find(names.begin(), names.end(), wanted) == names.end()) {
    return FieldError(field, absl::StrCat("must be one of ", absl::StrJoin(names, ", "),
                                          " for this model, got \"", wanted, "\""));
  }
  auto& encodings = *response->mutable_encodings();
  encodings.erase(
      std::remove_if(encodings.begin(), encodings.end(),
                     [&](const v1::ResolvedEncoding& e) { return (e.*name)() != wanted; }),
      encodings.end());
  return absl::OkStatus();
}

// Of one tower and layer type that carry several encodings (MPNet: learned rows
// and buckets) the one that has a table. Null when the tower is not decided.
const v1::ResolvedEncoding* OnlyTable(const Response& resolved) {
  const v1::ResolvedEncoding* only = nullptr;
  for (const v1::ResolvedEncoding& encoding : resolved.encodings()) {
    if (encoding.tower() != resolved.encodings(0).tower() ||
        encoding.layer_type() != resolved.encodings(0).layer_type()) {
      return nullptr;
    }
    if (!encoding.has_spec()) continue;
    if (only != nullptr) return nullptr;
    only = &encoding;
  }
  return only;
}

absl::StatusOr<Response> ResolveConfig(const v1::ModelSource& model, const JsonValue& config) {
  Response response;
  ASSIGN_OR_RETURN(const std::optional<std::string> model_type, ReadString(config["model_type"]));
  response.set_model_type(model_type.value_or(""));
  Findings findings;
  ASSIGN_OR_RETURN(const std::vector<Tower> towers, FindTowers(config, model, findings));
  for (const Tower& tower : towers) {
    const int before = response.encodings_size();
    RETURN_IF_ERROR(ResolveTower(tower, &response));
    NoteMisspeltKeys(tower);
    ASSIGN_OR_RETURN(const std::string dtype, CheckpointDType(tower.keys, config));
    for (int i = before; i < response.encodings_size(); ++i) {
      response.mutable_encodings(i)->set_dtype(dtype);
      AddCommonPlaces(tower, response.mutable_encodings(i));
      AddPlace("dtype", FirstOf(tower.keys, kDTypeKeys).present() ? tower.keys : config, kDTypeKeys,
               response.mutable_encodings(i));
    }
  }
  for (const v1::Finding& finding : findings.all()) *response.add_findings() = finding;
  RETURN_IF_ERROR(Narrow("tower", model.tower(), &v1::ResolvedEncoding::tower, &response));
  RETURN_IF_ERROR(
      Narrow("layer_type", model.layer_type(), &v1::ResolvedEncoding::layer_type, &response));
  return response;
}

}  // namespace

absl::StatusOr<Response> ResolveModelConfig(const v1::ModelSource& model) {
  if (!v1::Compat_IsValid(model.compat())) {
    return FieldError("compat", absl::StrCat("is no value of the enum: ", model.compat()));
  }
  RETURN_IF_ERROR(CheckSequenceLength(model));
  ASSIGN_OR_RETURN(const std::unique_ptr<JsonDocument> document, ParseModel(model));
  absl::StatusOr<Response> response = ResolveConfig(model, document->root());
  if (!response.ok()) return WithPlace(response.status(), document->root());
  return response;
}

absl::StatusOr<v1::ResolvedEncoding> OneEncoding(const Response& resolved) {
  if (const v1::ResolvedEncoding* only = OnlyTable(resolved)) return *only;
  if (resolved.encodings_size() != 1) {
    std::vector<std::string> names;
    for (const v1::ResolvedEncoding& encoding : resolved.encodings()) {
      names.push_back(absl::StrCat(encoding.tower(), "/", encoding.layer_type()));
    }
    return FieldError("tower", absl::StrCat("this model has several encodings, name one by tower "
                                            "and layer_type: ",
                                            absl::StrJoin(names, ", ")));
  }
  const v1::ResolvedEncoding& encoding = resolved.encodings(0);
  if (!encoding.has_spec()) {
    return FieldError("tower", absl::StrCat(encoding.tower(), " has an encoding of kind ",
                                            encoding.kind(), ", of which there is no table"));
  }
  return encoding;
}

std::vector<std::string> KnownModelTypes() {
  std::vector<std::string> types;
  for (const std::span<const ModelFamily> table :
       {DecoderRows(), LayeredRows(), EncoderRows(), VisionRows()}) {
    for (const ModelFamily& family : table) {
      for (absl::string_view type : absl::StrSplit(family.model_types, ' ', absl::SkipEmpty())) {
        types.emplace_back(type);
      }
    }
  }
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  return types;
}

}  // namespace posenc
