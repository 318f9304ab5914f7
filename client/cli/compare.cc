#include "client/cli/compare.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/compare_effects.h"
#include "client/cli/compare_places.h"
#include "client/cli/compare_tables.h"
#include "client/cli/json.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/message_differencer.h"

namespace posenc::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Of a grid of patches that is another size than the rows were trained for.
constexpr absl::string_view kResampled =
    "its rows are resampled: by the new size, or by a ratio with 0.1 added, as DINOv2's first code "
    "has it, which are two tables; table_resample says which";

// Where a finding speaks: "text/full_attention".
std::string Place(const v1::ResolvedEncoding& encoding) {
  return absl::StrCat(encoding.tower(), "/", encoding.layer_type());
}

v1::Finding MakeFinding(v1::Severity severity, absl::string_view rule, std::string message,
                        std::string found, std::string expected) {
  v1::Finding finding;
  finding.set_severity(severity);
  finding.set_rule(std::string(rule));
  finding.set_message(std::move(message));
  finding.set_found(std::move(found));
  finding.set_expected(std::move(expected));
  return finding;
}

// The value of a field as JSON writes it, integers without quotes, "unset" when it is not there.
std::string FieldText(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  const bool is_set = field->is_repeated() ? reflection->FieldSize(message, field) > 0
                                           : reflection->HasField(message, field);
  if (!is_set) return "unset";
  std::unique_ptr<Message> only(message.New());
  // A copy with this field alone: its JSON is {"name":value}.
  only->CopyFrom(message);
  std::vector<const FieldDescriptor*> set;
  reflection->ListFields(message, &set);
  for (const FieldDescriptor* other : set) {
    if (other != field) reflection->ClearField(only.get(), other);
  }
  const std::string json = CompactJson(*only);
  const size_t begin = json.find(':') + 1;
  const std::string text = json.substr(begin, json.rfind('}') - begin);
  const bool number = field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 && !field->is_repeated();
  return number ? absl::StrReplaceAll(text, {{"\"", ""}}) : text;
}

// A field in which two messages of one type differ: "factor 8 (base 32)".
struct FieldDifference {
  std::string name;
  std::string text;
};

std::vector<FieldDifference> DifferingFields(const Message& base, const Message& model) {
  std::vector<FieldDifference> differences;
  const auto* descriptor = base.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string of_base = FieldText(base, field);
    const std::string of_model = FieldText(model, field);
    if (of_base == of_model) continue;
    constexpr size_t kMaxShown = 80;  // longer ones are lists of factors
    const bool shown = of_base.size() + of_model.size() <= kMaxShown;
    differences.push_back(
        {field->name(), shown ? absl::StrCat(field->name(), " ", of_model, " (base ", of_base, ")")
                              : absl::StrCat(field->name(), " differs")});
  }
  return differences;
}

std::string TextOf(const std::vector<FieldDifference>& differences) {
  return absl::StrJoin(differences, ", ", [](std::string* text, const FieldDifference& difference) {
    absl::StrAppend(text, difference.text);
  });
}

// The field that is set of a oneof of messages; null: none.
const FieldDescriptor* SetFieldOf(const Message& message, const char* oneof) {
  return message.GetReflection()->GetOneofFieldDescriptor(
      message, message.GetDescriptor()->FindOneofByName(oneof));
}

// The differences of two encodings of one tower and layer type.
class Comparison {
 public:
  Comparison(const v1::ResolvedEncoding& base, const v1::ResolvedEncoding& model)
      : base_(base), model_(model) {}

  absl::StatusOr<std::vector<v1::Finding>> Run(const Client& client) && {
    if (Differ("base-kind-differs", "kind", "kind", model_.kind(), base_.kind())) {
      SetSwitchPlace(model_, base_.kind(), &findings_.back());
      return std::move(findings_);
    }
    if (base_.spec().has_rope() && model_.spec().has_rope()) {
      if (absl::Status status = CompareRope(client); !status.ok()) return status;
    } else if (base_.spec().has_alibi() && model_.spec().has_alibi()) {
      if (absl::Status status = CompareAlibi(client); !status.ok()) return status;
    } else if (absl::Status status = CompareOther(client); !status.ok()) {
      return status;
    }
    CompareLayers();
    if (base_.max_position_embeddings() != model_.max_position_embeddings()) {
      Add(v1::SEVERITY_WARNING, "base-length-differs", "max_position_embeddings",
          "max_position_embeddings", absl::StrCat(model_.max_position_embeddings()),
          absl::StrCat(base_.max_position_embeddings()));
    }
    return std::move(findings_);
  }

 private:
  // `fact` is what decides it in the file (FactPlace).
  void Add(v1::Severity severity, absl::string_view rule, absl::string_view fact,
           absl::string_view what, std::string found, std::string expected,
           absl::string_view effect = "") {
    std::string message =
        absl::StrCat(Place(model_), ": ", what, " is ", found, ", in the base ", expected);
    if (!effect.empty()) absl::StrAppend(&message, " (", effect, ")");
    findings_.push_back(
        MakeFinding(severity, rule, std::move(message), std::move(found), std::move(expected)));
    SetPlace(model_, fact, &findings_.back());
  }

  template <typename Value>
  bool Differ(absl::string_view rule, absl::string_view fact, absl::string_view what,
              const Value& model, const Value& base, absl::string_view effect = "") {
    if (model == base) return false;
    if constexpr (std::is_same_v<Value, double>) {
      Add(v1::SEVERITY_ERROR, rule, fact, what, ExactDouble(model), ExactDouble(base), effect);
    } else {
      Add(v1::SEVERITY_ERROR, rule, fact, what, absl::StrCat(model), absl::StrCat(base), effect);
    }
    return true;
  }

  static v1::EncodingSpec WithTheta(v1::EncodingSpec spec, double rope_theta) {
    spec.mutable_rope()->set_rope_theta(rope_theta);
    return spec;
  }

  // Of a spec that is neither the base's nor the model's: one that is refused has none.
  absl::StatusOr<std::string> EffectAlone(const Client& client,
                                          const v1::EncodingSpec& spec) const {
    absl::StatusOr<std::string> effect = FrequencyEffect(client, base_.spec(), spec);
    if (absl::IsInvalidArgument(effect.status())) return "";
    return effect;
  }

  // The last finding stands at the first of these parameters of the scaling that decides it.
  void SetParameterPlace(std::initializer_list<absl::string_view> names) {
    const FieldDescriptor* scaling = SetFieldOf(model_.spec().rope(), "scaling");
    if (scaling == nullptr) return;
    for (absl::string_view name : names) {
      const std::string fact = absl::StrCat(scaling->name(), ".", name);
      if (SetDifferingPlace(model_, base_, fact, &findings_.back())) return;
    }
  }

  absl::Status CompareRope(const Client& client) {
    const v1::RopeSpec& base = base_.spec().rope();
    const v1::RopeSpec& model = model_.spec().rope();
    const absl::StatusOr<std::string> frequencies =
        FrequencyEffect(client, base_.spec(), model_.spec());
    if (!frequencies.ok()) return frequencies.status();
    const std::string& effect = *frequencies;

    Differ("base-rotary-dim-differs", "head_dim", "head_dim", model.head_dim(), base.head_dim());
    Differ("base-rotary-dim-differs", "rotary_dim", "rotary_dim", model.rotary_dim(),
           base.rotary_dim(), effect);
    // What the base of the frequencies and their scheme do, each without the other.
    const absl::StatusOr<std::string> of_theta =
        EffectAlone(client, WithTheta(base_.spec(), model.rope_theta()));
    if (!of_theta.ok()) return of_theta.status();
    const absl::StatusOr<std::string> of_scheme =
        EffectAlone(client, WithTheta(model_.spec(), base.rope_theta()));
    if (!of_scheme.ok()) return of_scheme.status();
    Differ("base-theta-differs", "rope_theta", "rope_theta", model.rope_theta(), base.rope_theta(),
           *of_theta);
    if (!Differ("base-scheme-differs", "rope_type", "rope_type", model_.rope_type(),
                base_.rope_type(), *of_scheme)) {
      CompareScaling(*of_scheme);
    }
    Differ("base-scheme-differs", "rope_type", "variant", model_.variant(), base_.variant());
    Differ("base-pairing-differs", "kind", "rotation", model_.rotation(), base_.rotation());
    const absl::StatusOr<std::string> axes = AxisEffect(client, base_, model_);
    if (!axes.ok()) return axes.status();
    const auto mrope = [](const v1::ResolvedEncoding& encoding) {
      return encoding.has_mrope() ? CompactJson(encoding.mrope()) : std::string("none");
    };
    Differ("base-mrope-differs", model_.has_mrope() ? "mrope_section" : "scaling", "mrope",
           mrope(model_), mrope(base_), *axes);
    if (Differ("base-attention-differs", "scaling", "attention_factor", model_.attention_factor(),
               base_.attention_factor())) {
      SetParameterPlace({"attention_factor", "attn_factor", "mscale", "mscale_all_dim", "factor"});
    }
    if (Differ("base-attention-differs", "scaling", "softmax_scale_multiplier",
               model_.softmax_scale_multiplier(), base_.softmax_scale_multiplier())) {
      SetParameterPlace({"mscale_all_dim", "factor"});
    }
    Differ("base-attention-differs", "scaling", "query_scale", CompactJson(model_.query_scale()),
           CompactJson(base_.query_scale()));
    return absl::OkStatus();
  }

  void CompareScaling(const std::string& effect) {
    const v1::RopeSpec& base = base_.spec().rope();
    const v1::RopeSpec& model = model_.spec().rope();
    const FieldDescriptor* scaling = SetFieldOf(model, "scaling");
    if (scaling == nullptr || scaling != SetFieldOf(base, "scaling")) {
      return;  // rope_type has said it
    }
    const auto* reflection = v1::RopeSpec::GetReflection();
    AddFields("base-scaling-differs", reflection->GetMessage(base, scaling),
              reflection->GetMessage(model, scaling), effect,
              {.prefix = absl::StrCat(scaling->name(), "."), .otherwise = "scaling"});
  }

  // What names the place of a field that differs, and of one that is not in the file.
  struct FieldPlaces {
    std::string prefix;
    absl::string_view otherwise;
  };

  // One finding of all fields in which the two differ, at the first that is in the file.
  void AddFields(absl::string_view rule, const Message& base, const Message& model,
                 absl::string_view effect, const FieldPlaces& places) {
    const std::vector<FieldDifference> differences = DifferingFields(base, model);
    if (differences.empty()) return;
    findings_.push_back(MakeFinding(
        v1::SEVERITY_ERROR, rule,
        absl::StrCat(Place(model_), ": ", TextOf(differences), effect.empty() ? "" : "; ", effect),
        CompactJson(model), CompactJson(base)));
    for (const FieldDifference& difference : differences) {
      const std::string fact = absl::StrCat(places.prefix, difference.name);
      if (SetPlace(model_, fact, &findings_.back())) return;
    }
    SetPlace(model_, places.otherwise, &findings_.back());
  }

  // What is constant along a row leaves a softmax as it is, and the roundings of a slope are of
  // one real number: neither is the mistake that another slope is.
  absl::Status CompareAlibi(const Client& client) {
    Differ("base-attention-differs", "kind", "bias_scale", model_.bias_scale(), base_.bias_scale());
    const v1::AlibiSpec& base = base_.spec().alibi();
    const v1::AlibiSpec& model = model_.spec().alibi();
    const std::string fields = TextOf(DifferingFields(base, model));
    if (fields.empty()) return absl::OkStatus();
    const absl::StatusOr<std::string> slopes = SlopeEffect(client, base_.spec(), model_.spec());
    if (!slopes.ok()) return slopes.status();
    std::string effect = *slopes;
    const bool alike = effect.empty() && IsRowConstant(base) && IsRowConstant(model);
    if (alike) {
      effect =
          "the same slopes, up to a constant per row and the last bit of a float32; in 16 bits the "
          "biases differ";
    } else if (effect.empty()) {
      effect = "the same slopes, times another distance or rounded to bfloat16";
    }
    findings_.push_back(MakeFinding(alike ? v1::SEVERITY_WARNING : v1::SEVERITY_ERROR,
                                    "base-spec-differs",
                                    absl::StrCat(Place(model_), ": ", fields, "; ", effect),
                                    CompactJson(model_.spec()), CompactJson(base_.spec())));
    SetPlace(model_, "kind", &findings_.back());
    return absl::OkStatus();
  }

  // What a difference of two specs of one family does; empty where it has no number.
  absl::StatusOr<std::string> SpecEffect(const Client& client) const {
    const v1::EncodingSpec& base = base_.spec();
    const v1::EncodingSpec& model = model_.spec();
    if (base.has_t5()) return BucketEffect(client, base, model);
    if (!base.has_axial_rope()) return "";
    absl::StatusOr<std::string> frequencies = FrequencyEffect(client, base, model);
    if (!frequencies.ok()) return frequencies.status();
    const absl::StatusOr<std::string> grid = GridEffect(client, base, model);
    if (!grid.ok()) return grid.status();
    return absl::StrCat(*frequencies, frequencies->empty() || grid->empty() ? "" : "; ", *grid);
  }

  absl::Status CompareSpecs(const Client& client) {
    const FieldDescriptor* family = SetFieldOf(model_.spec(), "family");
    if (family == nullptr || family != SetFieldOf(base_.spec(), "family")) {
      Differ("base-spec-differs", "kind", "the encoding", CompactJson(model_.spec()),
             CompactJson(base_.spec()));
      return absl::OkStatus();
    }
    const absl::StatusOr<std::string> effect = SpecEffect(client);
    if (!effect.ok()) return effect.status();
    const auto* reflection = v1::EncodingSpec::GetReflection();
    AddFields("base-spec-differs", reflection->GetMessage(base_.spec(), family),
              reflection->GetMessage(model_.spec(), family), *effect,
              {.prefix = "", .otherwise = "kind"});
    return absl::OkStatus();
  }

  // Neither has a table of one RoPE: a difference is one of the messages.
  absl::Status CompareOther(const Client& client) {
    const auto& same = google::protobuf::util::MessageDifferencer::Equals;
    if (!same(base_.spec(), model_.spec())) {
      if (absl::Status status = CompareSpecs(client); !status.ok()) return status;
    } else if (!same(base_.axial(), model_.axial())) {  // which the spec is made from
      Differ("base-spec-differs", "kind", "the grid", CompactJson(model_.axial()),
             CompactJson(base_.axial()));
    }
    if (!same(base_.learned(), model_.learned())) {
      const bool resampled = !base_.learned().grid().empty() && !model_.learned().grid().empty() &&
                             base_.learned().dim() == model_.learned().dim();
      Differ("base-spec-differs", "max_position_embeddings", "the learned table",
             CompactJson(model_.learned()), CompactJson(base_.learned()),
             resampled ? kResampled : "");
    }
    if (!same(base_.relative(), model_.relative())) {
      Differ("base-spec-differs", "kind", "the relative table", CompactJson(model_.relative()),
             CompactJson(base_.relative()));
    }
    return absl::OkStatus();
  }

  void CompareLayers() {
    const auto text = [](const auto& layers) {
      return layers.empty() ? std::string("all") : absl::StrJoin(layers, ",");
    };
    Differ("base-layers-differ", "layers", "layers", text(model_.layers()), text(base_.layers()));
    Differ("base-layers-differ", "layers", "layers without RoPE",
           model_.nope_layers().empty() ? "none" : text(model_.nope_layers()),
           base_.nope_layers().empty() ? "none" : text(base_.nope_layers()));
  }

  const v1::ResolvedEncoding& base_;
  const v1::ResolvedEncoding& model_;
  std::vector<v1::Finding> findings_;
};

}  // namespace

absl::StatusOr<std::vector<v1::Finding>> CompareWithBase(
    const Client& client, const v1::ResolveModelConfigResponse& base,
    const v1::ResolveModelConfigResponse& model) {
  std::vector<v1::Finding> findings;
  const EncodingPairs pairs = PairEncodings(base, model);
  for (const auto& [of_base, of_model] : pairs.of_base) {
    if (of_model == nullptr) {
      findings.push_back(
          MakeFinding(v1::SEVERITY_ERROR, "base-encoding-missing",
                      absl::StrCat("the base has an encoding (", of_base->kind(), ") for ",
                                   Place(*of_base), ", this model has none"),
                      "", Place(*of_base)));
      SetMissingPlace(model, *of_base, &findings.back());
      continue;
    }
    absl::StatusOr<std::vector<v1::Finding>> more = Comparison(*of_base, *of_model).Run(client);
    if (!more.ok()) return more.status();
    findings.insert(findings.end(), more->begin(), more->end());
  }
  for (const v1::ResolvedEncoding* of_model : pairs.added) {
    findings.push_back(MakeFinding(v1::SEVERITY_WARNING, "base-encoding-added",
                                   absl::StrCat("this model has an encoding (", of_model->kind(),
                                                ") for ", Place(*of_model), ", the base has none"),
                                   Place(*of_model), ""));
    SetSwitchPlace(*of_model, SwitchedName(*of_model), &findings.back());
  }
  return findings;
}

}  // namespace posenc::cli
