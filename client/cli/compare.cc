#include "client/cli/compare.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/json.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/message_differencer.h"

namespace posenc::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Where a finding speaks: "text/full_attention".
std::string Place(const v1::ResolvedEncoding& encoding) {
  return absl::StrCat(encoding.tower(), "/", encoding.layer_type());
}

// Where the file says `fact` of the encoding, or lacks it.
void SetPlace(const v1::ResolvedEncoding& encoding, absl::string_view fact, v1::Finding* finding) {
  for (const v1::FactPlace& place : encoding.places()) {
    if (place.fact() != fact) continue;
    finding->set_pointer(place.pointer());
    finding->set_line(place.line());
    finding->set_column(place.column());
    return;
  }
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

// The value of a field as JSON writes it, "unset" when it is not there.
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
  return json.substr(begin, json.rfind('}') - begin);
}

// The fields in which two messages of one type differ: "factor 8 (base 32)".
std::string DifferingFields(const Message& base, const Message& model) {
  std::vector<std::string> parts;
  const auto* descriptor = base.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string of_base = FieldText(base, field);
    const std::string of_model = FieldText(model, field);
    if (of_base == of_model) continue;
    constexpr size_t kMaxShown = 80;  // longer ones are lists of factors
    const bool shown = of_base.size() + of_model.size() <= kMaxShown;
    parts.push_back(shown ? absl::StrCat(field->name(), " ", of_model, " (base ", of_base, ")")
                          : absl::StrCat(field->name(), " differs"));
  }
  return absl::StrJoin(parts, ", ");
}

// The scaling of a RoPE; null: none.
const Message* ScalingOf(const v1::RopeSpec& rope) {
  const auto* oneof = v1::RopeSpec::descriptor()->FindOneofByName("scaling");
  const auto* field = v1::RopeSpec::GetReflection()->GetOneofFieldDescriptor(rope, oneof);
  return field == nullptr ? nullptr : &v1::RopeSpec::GetReflection()->GetMessage(rope, field);
}

absl::StatusOr<std::vector<double>> InvFreq(const Client& client, const v1::EncodingSpec& spec) {
  v1::DescribeTableRequest request;
  *request.mutable_spec() = spec;
  const absl::StatusOr<v1::DescribeTableResponse> response = client.DescribeTable(request);
  if (!response.ok()) return response.status();
  return std::vector<double>(response->inv_freq().begin(), response->inv_freq().end());
}

// "35 of 64 frequencies differ, from pair 29, by up to 8x"; empty when none does.
std::string FrequencyEffect(const std::vector<double>& base, const std::vector<double>& model) {
  if (base.size() != model.size()) {
    return absl::StrCat(model.size(), " frequencies, base ", base.size());
  }
  size_t first = base.size();
  size_t count = 0;
  double worst = 1.0;
  for (size_t i = 0; i < base.size(); ++i) {
    if (base[i] == model[i]) continue;
    first = std::min(first, i);
    ++count;
    const double ratio = base[i] / model[i];
    if (std::isfinite(ratio) && ratio > 0) worst = std::max({worst, ratio, 1 / ratio});
  }
  if (count == 0) return "";
  return absl::StrFormat("%d of %d frequencies differ, from pair %d, by up to %.3gx", count,
                         base.size(), first, worst);
}

// The differences of two encodings of one tower and layer type.
class Comparison {
 public:
  Comparison(const v1::ResolvedEncoding& base, const v1::ResolvedEncoding& model)
      : base_(base), model_(model) {}

  absl::StatusOr<std::vector<v1::Finding>> Run(const Client& client) && {
    if (Differ("base-kind-differs", "kind", "kind", model_.kind(), base_.kind())) {
      return std::move(findings_);
    }
    if (base_.spec().has_rope() && model_.spec().has_rope()) {
      if (absl::Status status = CompareRope(client); !status.ok()) return status;
    } else {
      CompareOther();
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

  absl::Status CompareRope(const Client& client) {
    const v1::RopeSpec& base = base_.spec().rope();
    const v1::RopeSpec& model = model_.spec().rope();
    const auto base_frequencies = InvFreq(client, base_.spec());
    if (!base_frequencies.ok()) return base_frequencies.status();
    const auto model_frequencies = InvFreq(client, model_.spec());
    if (!model_frequencies.ok()) return model_frequencies.status();
    const std::string effect = FrequencyEffect(*base_frequencies, *model_frequencies);

    Differ("base-rotary-dim-differs", "head_dim", "head_dim", model.head_dim(), base.head_dim());
    Differ("base-rotary-dim-differs", "rotary_dim", "rotary_dim", model.rotary_dim(),
           base.rotary_dim(), effect);
    Differ("base-theta-differs", "rope_theta", "rope_theta", model.rope_theta(), base.rope_theta(),
           effect);
    if (!Differ("base-scheme-differs", "rope_type", "rope_type", model_.rope_type(),
                base_.rope_type(), effect)) {
      CompareScaling(effect);
    }
    Differ("base-scheme-differs", "rope_type", "variant", model_.variant(), base_.variant());
    Differ("base-pairing-differs", "kind", "rotation", model_.rotation(), base_.rotation());
    Differ("base-mrope-differs", "mrope_section", "mrope", CompactJson(model_.mrope()),
           CompactJson(base_.mrope()));
    Differ("base-attention-differs", "scaling", "attention_factor", model_.attention_factor(),
           base_.attention_factor());
    Differ("base-attention-differs", "scaling", "softmax_scale_multiplier",
           model_.softmax_scale_multiplier(), base_.softmax_scale_multiplier());
    Differ("base-attention-differs", "scaling", "query_scale", CompactJson(model_.query_scale()),
           CompactJson(base_.query_scale()));
    return absl::OkStatus();
  }

  void CompareScaling(const std::string& effect) {
    const Message* base = ScalingOf(base_.spec().rope());
    const Message* model = ScalingOf(model_.spec().rope());
    if (base == nullptr || model == nullptr || base->GetDescriptor() != model->GetDescriptor()) {
      return;  // rope_type has said it
    }
    const std::string fields = DifferingFields(*base, *model);
    if (fields.empty()) return;
    findings_.push_back(MakeFinding(
        v1::SEVERITY_ERROR, "base-scaling-differs",
        absl::StrCat(Place(model_), ": ", fields, effect.empty() ? "" : absl::StrCat("; ", effect)),
        CompactJson(*model), CompactJson(*base)));
    SetPlace(model_, "scaling", &findings_.back());
  }

  // Neither has a table of RoPE: a difference is one of the messages.
  void CompareOther() {
    const auto& same = google::protobuf::util::MessageDifferencer::Equals;
    if (!same(base_.spec(), model_.spec())) {
      Differ("base-spec-differs", "kind", "the encoding", CompactJson(model_.spec()),
             CompactJson(base_.spec()));
    } else if (!same(base_.axial(), model_.axial())) {  // which the spec is made from
      Differ("base-spec-differs", "kind", "the grid", CompactJson(model_.axial()),
             CompactJson(base_.axial()));
    }
    if (!same(base_.learned(), model_.learned())) {
      Differ("base-spec-differs", "max_position_embeddings", "the learned table",
             CompactJson(model_.learned()), CompactJson(base_.learned()));
    }
    if (!same(base_.relative(), model_.relative())) {
      Differ("base-spec-differs", "kind", "the relative table", CompactJson(model_.relative()),
             CompactJson(base_.relative()));
    }
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

const v1::ResolvedEncoding* FindLike(const v1::ResolveModelConfigResponse& in,
                                     const v1::ResolvedEncoding& like) {
  for (const v1::ResolvedEncoding& encoding : in.encodings()) {
    if (encoding.tower() == like.tower() && encoding.layer_type() == like.layer_type()) {
      return &encoding;
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<v1::Finding>> CompareWithBase(
    const Client& client, const v1::ResolveModelConfigResponse& base,
    const v1::ResolveModelConfigResponse& model) {
  std::vector<v1::Finding> findings;
  for (const v1::ResolvedEncoding& of_base : base.encodings()) {
    const v1::ResolvedEncoding* of_model = FindLike(model, of_base);
    if (of_model == nullptr) {
      findings.push_back(MakeFinding(
          v1::SEVERITY_ERROR, "base-encoding-missing",
          absl::StrCat("the base has an encoding for ", Place(of_base), ", this model has none"),
          "", Place(of_base)));
      if (!model.encodings().empty()) SetPlace(model.encodings(0), "kind", &findings.back());
      continue;
    }
    absl::StatusOr<std::vector<v1::Finding>> more = Comparison(of_base, *of_model).Run(client);
    if (!more.ok()) return more.status();
    findings.insert(findings.end(), more->begin(), more->end());
  }
  for (const v1::ResolvedEncoding& of_model : model.encodings()) {
    if (FindLike(base, of_model) != nullptr) continue;
    findings.push_back(MakeFinding(
        v1::SEVERITY_WARNING, "base-encoding-added",
        absl::StrCat("this model has an encoding for ", Place(of_model), ", the base has none"),
        Place(of_model), ""));
    SetPlace(of_model, "kind", &findings.back());
  }
  return findings;
}

}  // namespace posenc::cli
