#include "lib/model_config/text_family.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

// A head or a base of some layers, by rules of the families that have them.
constexpr absl::string_view kKeysOfSomeLayers =
    "global_head_dim swa_head_dim swa_rope_theta compress_rope_theta";

// How RecBole and its kin name the rows of a learned table; nobody else does.
constexpr absl::string_view kRecommenderKeys = "max_seq_length";

// architectures[0], of the config or of the file.
JsonValue Architecture(const TextConfig& config) {
  for (const JsonValue& object : {config.keys, config.file}) {
    const std::vector<JsonValue> names = object["architectures"].children();
    if (!names.empty()) return names.front();
  }
  return JsonValue();
}

void NoteUnknownType(const TextConfig& config, absl::string_view instead, Findings& findings) {
  if (config.type.empty()) {
    findings.AddMissing(
        Rule::kModelTypeMissing, config.typed, "model_type",
        {.message = absl::StrCat("model_type is missing, so transformers refuses the file; ",
                                 instead, ".")});
  } else {
    findings.Add(Rule::kModelTypeUnknown, config.typed["model_type"],
                 {.message = absl::StrCat("No family has this model_type; ", instead, ".")});
  }
}

// What says that positions are something else, or nothing, beside a base that may be a leftover
// (`absolute` is one itself, in files that were made of a BERT's); and what some layers have.
absl::Status RefuseUnread(const TextConfig& config) {
  for (absl::string_view key : {"position_embedding_type", "alibi", "use_alibi"}) {
    const JsonValue value = config.keys[key];
    const bool other = value.is_string() && value.string() != "rope" &&
                       value.string() != "rotary" && value.string() != "absolute";
    if (!other && !(value.is_bool() && value.bool_value())) continue;
    return FieldError(value.field(),
                      absl::StrCat("says that model_type \"", config.type,
                                   "\", which is not known here, has other positions than RoPE, "
                                   "whose keys stand beside it: ",
                                   value.Text()));
  }
  for (absl::string_view key : absl::StrSplit(kKeysOfSomeLayers, ' ')) {
    const JsonValue value = config.keys[key];
    if (!value.truthy()) continue;
    return FieldError(value.field(),
                      absl::StrCat("is for some layers alone, and which is not said in model_type "
                                   "\"",
                                   config.type, "\", which is not known here"));
  }
  return absl::OkStatus();
}

// The rope part of a latent-attention head is its whole; in ordinary attention the same key has
// been the width of a part, at either end of the head.
absl::StatusOr<const ModelFamily*> GenericFamily(const TextConfig& config, Findings& findings) {
  RETURN_IF_ERROR(RefuseUnread(config));
  const JsonValue part = config.keys["qk_rope_head_dim"];
  ASSIGN_OR_RETURN(const std::optional<int64_t> channels, ReadInt(part));
  ASSIGN_OR_RETURN(const std::optional<int64_t> head_dim, ReadInt(config.keys["head_dim"]));
  const bool latent = channels.value_or(0) > 0 && config.keys["kv_lora_rank"].truthy();
  if (channels.value_or(0) > 0 && !latent && channels != head_dim) {
    return FieldError(part.field(),
                      absl::StrCat("stands without kv_lora_rank in model_type \"", config.type,
                                   "\", which is not known here: whether the head rotates in "
                                   "these channels, and where they lie, is not said"));
  }
  NoteUnknownType(config,
                  latent ? "its keys are those of multi-head latent attention and are read as "
                           "DeepSeek-V3's, pairs of adjacent channels included"
                         : "its RoPE keys are the standard ones and are read by the generic rules",
                  findings);
  return latent ? &GenericLatentFamily() : &GenericRopeFamily();
}

}  // namespace

absl::StatusOr<const ModelFamily*> FindTextFamily(const TextConfig& config, Findings& findings) {
  if (const ModelFamily* family = FindFamily(config.type)) return family;
  const JsonValue architecture = Architecture(config);
  if (architecture.is_string()) {
    if (const ModelFamily* family = FindFamilyOfArchitecture(architecture.string())) {
      NoteUnknownType(
          config,
          absl::StrCat("its class, ", architecture.string(), ", says which family is meant"),
          findings);
      return family;
    }
  }
  if (config.type.empty() && FirstOf(config.keys, kRecommenderKeys).present()) {
    NoteUnknownType(config, "its keys are those of a sequential recommender", findings);
    return FindFamily("bert4rec");
  }
  if (config.type.empty()) {
    return FieldError(config.typed.FieldOf("model_type"), "is required to know the model's family");
  }
  if (FirstOf(config.keys, kStandardRopeKeys).present()) return GenericFamily(config, findings);
  return FieldError(
      config.typed["model_type"].field(),
      absl::StrCat("is not a model family that is known here: \"", config.type, "\""));
}

}  // namespace posenc
