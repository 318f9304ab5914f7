// FindTowers: which parts a config has, and the family of each.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/text_family.h"
#include "lib/model_config/tower.h"

namespace posenc {
namespace {

// Where composites keep their parts. thinker_config: Qwen's omni models.
constexpr absl::string_view kTextKeys =
    "text_config llm_config language_config llm_cfg thinker_config/text_config generator "
    "text_encoder";
constexpr absl::string_view kVisionKeys =
    "vision_config vision_tower_cfg visual thinker_config/vision_config";
constexpr absl::string_view kAudioKeys = "audio_config thinker_config/audio_config";

// Of a pair of any two models, vision-encoder-decoder and speech-encoder-decoder.
constexpr absl::string_view kPairEncoder = "encoder";
constexpr absl::string_view kPairDecoder = "decoder";

// The names beside it in transformers' get_text_config, which refuses two of them.
constexpr absl::string_view kTextConfigs = "text_config generator text_encoder";

// T5Gemma 2: the encoder is a composite of its own.
constexpr absl::string_view kT5GemmaEncoder = "encoder/text_config encoder";
constexpr absl::string_view kT5GemmaVision = "encoder/vision_config vision_config";

// The parts of a BLT, each of a class of its own. Without the last it is given its patches.
struct BltPart {
  absl::string_view key;
  absl::string_view model_type;
  bool required;
};
constexpr std::array kBltParts = {
    BltPart{"encoder_config", "blt_local_encoder", true},
    BltPart{"global_config", "blt_global_transformer", true},
    BltPart{"decoder_config", "blt_local_decoder", true},
    BltPart{"patcher_config", "blt_patcher", false},
};

// What a tower reads beside its own keys (SAM 2 and 3, Grounding DINO).
constexpr absl::string_view kBackbone = "backbone_config";

// A model of sounds, whose text is only read: a T5's encoder, as most often.
constexpr absl::string_view kMakesSounds = "musicgen musicgen_melody";

// Composites that read no text.
constexpr absl::string_view kSeesOnly = "sam2";

// A composite whose own RoPE is for the times of its audio.
constexpr absl::string_view kTurnsTimes = "musicflamingo";

// What a config of a whole model has, and a map of its RoPE has not.
constexpr absl::string_view kConfigKeys =
    "model_type hidden_size num_attention_heads num_hidden_layers";

// A config nested under one of `names`; absent where none is, or it is empty.
absl::StatusOr<JsonValue> NestedConfig(const JsonValue& config, absl::string_view names) {
  const JsonValue nested = FirstOf(config, names);
  if (!nested.present()) return JsonValue();
  if (!nested.is_object()) {
    return FieldError(nested.field(),
                      absl::StrCat("must be an object or null, got ", nested.Describe()));
  }
  return nested.size() == 0 ? JsonValue() : nested;
}

class TowerFinder {
 public:
  TowerFinder(const JsonValue& config, const v1::ModelSource& model, Findings& findings)
      : config_(config), model_(model), findings_(findings) {}

  // `default_type`: of a config that does not say its type, in one around it.
  absl::StatusOr<std::vector<Tower>> Find(absl::string_view default_type = "") {
    ASSIGN_OR_RETURN(root_type_, ReadType(config_));
    if (root_type_.empty()) root_type_ = std::string(default_type);
    ASSIGN_OR_RETURN(const bool class_only, AddByClass());
    if (class_only) return std::move(towers_);
    if (root_type_ == "t5gemma2") return FindT5Gemma();
    if (root_type_ == "blt") return FindBlt();
    if (root_type_ == "sam3_video") return FindSam3Video();
    const bool sees = root_type_ == "vision-encoder-decoder";
    const bool hears = root_type_ == "speech-encoder-decoder";
    if (HasName(kMakesSounds, root_type_)) {
      RETURN_IF_ERROR(AddText("text_encoder", "encoder"));
      RETURN_IF_ERROR(AddText(kPairDecoder, "text"));
    } else if (root_type_ != kSeesOnly) {
      ASSIGN_OR_RETURN(const bool in_decoder, HasTextInDecoder(sees || hears));
      RETURN_IF_ERROR(in_decoder ? AddDecoderAsText()
                                 : AddText(sees || hears ? kPairDecoder : kTextKeys));
    }
    RETURN_IF_ERROR(AddOther("vision", sees ? kPairEncoder : kVisionKeys));
    RETURN_IF_ERROR(AddOther("audio", hears ? kPairEncoder : kAudioKeys));
    if (root_type_ == "clvp") {
      RETURN_IF_ERROR(AddOther("speech", "speech_config"));
      RETURN_IF_ERROR(AddOther("decoder", "decoder_config"));
    }
    if (towers_.empty()) return Missing("vision_config");
    NoteUnreadConfigs(config_);
    return std::move(towers_);
  }

 private:
  // Of a family that is not known, as transformers' get_text_config finds it.
  absl::StatusOr<bool> HasTextInDecoder(bool is_pair) const {
    const JsonValue decoder = config_[kPairDecoder];
    const bool known = FindFamily(root_type_) != nullptr || FindVisionFamily(root_type_) != nullptr;
    if (known || is_pair || !decoder.is_object()) return false;
    if (!FirstOf(decoder, kConfigKeys).present()) return false;
    const JsonValue other = FirstOf(config_, kTextConfigs);
    if (other.is_object()) {
      return FieldError(decoder.field(),
                        absl::StrCat("stands beside ", other.key(),
                                     ": which of them is the text "
                                     "part of model_type \"",
                                     root_type_, "\", which is not known here, is not said"));
    }
    return !FirstOf(config_, kTextKeys).present();
  }

  // An encoder beside it is read where it sees or hears, whose names say what they are.
  absl::Status AddDecoderAsText() {
    RETURN_IF_ERROR(AddText(kPairDecoder, "text"));
    const JsonValue encoder = config_[kPairEncoder];
    if (!encoder.is_object()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string type, ReadType(encoder));
    if (FindVisionFamily(type) != nullptr) return AddOther("encoder", kPairEncoder);
    findings_.Add(
        Rule::kTowerUnknown, encoder,
        {.message = "The decoder beside it is read as the text part; this encoder is left "
                    "out.",
         .found = type});
    return absl::OkStatus();
  }

  // Empty where there is none.
  absl::StatusOr<std::string> ReadType(const JsonValue& keys) {
    ASSIGN_OR_RETURN(const std::optional<std::string> type, ReadString(keys["model_type"]));
    return type.value_or("");
  }

  void Add(const JsonValue& keys, const ModelFamily& family, absl::string_view name = "") {
    towers_.push_back(Tower{std::string(name.empty() ? family.tower : name), keys, family,
                            keys.pointer() != config_.pointer(), model_, findings_});
  }

  absl::StatusOr<std::vector<Tower>> FindT5Gemma() {
    RETURN_IF_ERROR(AddText(kT5GemmaEncoder, "encoder"));
    RETURN_IF_ERROR(AddText(kPairDecoder, "decoder"));
    RETURN_IF_ERROR(AddOther("vision", kT5GemmaVision));
    return std::move(towers_);
  }

  absl::StatusOr<std::vector<Tower>> FindBlt() {
    for (const BltPart& part : kBltParts) {
      ASSIGN_OR_RETURN(const JsonValue nested, NestedConfig(config_, part.key));
      if (!nested.present() && part.required) return Missing(part.key);
      if (!nested.present()) continue;
      NoteKeysBesideNested(nested);
      Add(nested, *FindFamily(part.model_type));
    }
    return std::move(towers_);
  }

  // A SAM 3, and a tracker that is built without a vision tower of its own.
  absl::StatusOr<std::vector<Tower>> FindSam3Video() {
    ASSIGN_OR_RETURN(const JsonValue detector, NestedConfig(config_, "detector_config"));
    if (!detector.present()) return Missing("detector_config");
    ASSIGN_OR_RETURN(towers_, TowerFinder(detector, model_, findings_).Find("sam3"));
    ASSIGN_OR_RETURN(const JsonValue tracker, NestedConfig(config_, "tracker_config"));
    if (!tracker.present()) return Missing("tracker_config");
    Add(tracker, *FindVisionFamily("sam3_tracker_video"));
    return std::move(towers_);
  }

  // A diffusion model names its class, and nothing else.
  absl::StatusOr<bool> AddByClass() {
    ASSIGN_OR_RETURN(const std::optional<std::string> name, ReadString(config_["_class_name"]));
    if (!name.has_value() || !root_type_.empty()) return false;
    const ModelFamily* family = FindVisionFamily(*name);
    if (family == nullptr) {
      return FieldError(config_["_class_name"].field(),
                        absl::StrCat("is not a class that is known here: \"", *name, "\""));
    }
    Add(config_, *family);
    return true;
  }

  absl::Status AddText(absl::string_view names, absl::string_view tower = "") {
    ASSIGN_OR_RETURN(const JsonValue nested, NestedConfig(config_, names));
    if (!nested.present()) return tower.empty() ? AddRoot() : Missing(names);
    ASSIGN_OR_RETURN(std::string type, ReadType(nested));
    const JsonValue typed = type.empty() ? config_ : nested;
    if (type.empty()) type = root_type_;
    ASSIGN_OR_RETURN(const ModelFamily* family,
                     FindTextFamily({type, typed, nested, config_}, findings_));
    NoteKeysBesideNested(nested);
    Add(nested, *family, tower);
    return absl::OkStatus();
  }

  absl::Status Missing(absl::string_view names) const {
    const absl::string_view last = names.substr(names.rfind(' ') + 1);
    return FieldError(config_.FieldOf(last),
                      absl::StrCat("is required for model_type ", root_type_));
  }

  absl::Status AddRoot() {
    // A vision or audio model by itself, unless its name is that of a text model.
    if (FindFamily(root_type_) == nullptr) {
      if (const ModelFamily* family = FindVisionFamily(root_type_)) {
        Add(config_, *family);
        return absl::OkStatus();
      }
    }
    ASSIGN_OR_RETURN(const ModelFamily* family,
                     FindTextFamily({root_type_, config_, config_, config_}, findings_));
    Add(config_, *family);
    return absl::OkStatus();
  }

  // Only the nested config is read: what stands beside it is lost.
  void NoteKeysBesideNested(const JsonValue& nested) {
    for (absl::string_view key : {"rope_scaling", "rope_parameters", "rope_theta"}) {
      const JsonValue value = config_[key];
      if (!value.has_value()) continue;
      // BLT's class has keys of these names too, whose values its parts say again.
      if (root_type_ == "blt" && nested[key].has_value()) continue;
      if (root_type_ == kTurnsTimes) {
        findings_.Add(Rule::kTowerUnknown, value,
                      {.message = "This RoPE turns the audio's features by their times, which is "
                                  "not computed here; it is left out."});
        continue;
      }
      findings_.Add(Rule::kRopeKeyIgnored, value,
                    {.message = absl::StrCat(key, " stands beside ", nested.pointer(),
                                             ", of which the text model is built; it is ignored."),
                     .expected = absl::StrCat(nested.pointer(), "/", key)});
    }
  }

  // A part beside the text. An unknown one is a note, not a refusal: what was
  // asked is most often the text.
  absl::Status AddOther(absl::string_view name, absl::string_view names) {
    ASSIGN_OR_RETURN(const JsonValue nested, NestedConfig(config_, names));
    if (!nested.present()) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::string type, ReadType(nested));
    // Where it does not say its type, the model around it has one class for it. So has one whose
    // files name what its parts were made from (minimax_m2, clip_vision_model).
    const bool named = !type.empty() && root_type_ != "minimax_m3_vl";
    if (!named) type = root_type_;
    const ModelFamily* family = FindVisionFamily(type);
    if (family != nullptr && (named || family->tower == name)) {
      Add(nested, *family);
      return absl::OkStatus();
    }
    findings_.Add(Rule::kTowerUnknown, nested,
                  {.message = absl::StrCat("The positions of this ", name, " tower (model_type \"",
                                           type, "\") are not known here; it is left out."),
                   .found = type});
    return absl::OkStatus();
  }

  bool IsRead(const JsonValue& object) const {
    return std::any_of(towers_.begin(), towers_.end(), [&](const Tower& tower) {
      return tower.keys.pointer() == object.pointer();
    });
  }

  // Parts that no tower reads (a talker, a vocoder, a codec), if they are configs with a RoPE. A
  // map of one is not a config: it has no sizes.
  void NoteUnreadConfigs(const JsonValue& object) {
    for (const JsonValue& part : object.children()) {
      if (!part.is_object() || (part.key() == kBackbone && IsRead(object))) continue;
      if (FirstOf(part, kStandardRopeKeys).present() && FirstOf(part, kConfigKeys).present() &&
          !IsRead(part)) {
        findings_.Add(Rule::kTowerUnknown, part,
                      {.message = absl::StrCat("This part has a RoPE of its own, which is not read "
                                               "here; ",
                                               part.key(), " is left out."),
                       .found = std::string(part.key())});
      }
      NoteUnreadConfigs(part);
    }
  }

  const JsonValue config_;
  const v1::ModelSource& model_;
  Findings& findings_;
  std::string root_type_;
  std::vector<Tower> towers_;
};

}  // namespace

absl::StatusOr<std::vector<Tower>> FindTowers(const JsonValue& config, const v1::ModelSource& model,
                                              Findings& findings) {
  return TowerFinder(config, model, findings).Find();
}

}  // namespace posenc
