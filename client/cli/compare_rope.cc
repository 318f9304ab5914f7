#include "client/cli/compare_rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/compare_effects.h"
#include "client/cli/compare_tables.h"

namespace posenc::cli {
namespace {

using google::protobuf::FieldDescriptor;

constexpr char kAttention[] = "base-attention-differs";

// Parameters of a scaling that leave the frequencies as they are.
constexpr std::array<absl::string_view, 6> kMultipliers = {
    "attention_factor", "attn_factor", "mscale", "mscale_all_dim", "short_mscale", "long_mscale"};

v1::EncodingSpec WithTheta(v1::EncodingSpec spec, double rope_theta) {
  spec.mutable_rope()->set_rope_theta(rope_theta);
  return spec;
}

// The scheme of `spec` for the frequencies of `like`.
v1::EncodingSpec SchemeFor(v1::EncodingSpec spec, const v1::RopeSpec& like) {
  spec.mutable_rope()->set_rope_theta(like.rope_theta());
  spec.mutable_rope()->set_head_dim(like.head_dim());
  spec.mutable_rope()->set_rotary_dim(like.rotary_dim());
  return spec;
}

std::string Joined(std::vector<std::string> parts) {
  parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  return absl::StrJoin(parts, "; ");
}

// "16,24,24 contiguous"; none.
std::string MropeText(const v1::ResolvedEncoding& encoding) {
  if (!encoding.has_mrope()) return "none";
  return absl::StrCat(absl::StrJoin(encoding.mrope().sections(), ","), " ",
                      encoding.mrope().scheme());
}

// What multiplies a query at a position (QueryScale).
double QueryFactor(const v1::ResolvedEncoding& encoding, int64_t position) {
  const v1::QueryScale& scale = encoding.query_scale();
  const auto length = static_cast<double>(scale.length());
  const auto p = static_cast<double>(position);
  if (!encoding.has_query_scale() || length == 0) return 1;
  if (scale.rule() == "logn") return p < length ? 1 : std::log(p + 1) / std::log(length);
  const double blocks = std::floor((p + static_cast<double>(scale.shift())) / length);
  return 1 + scale.beta() * std::log1p(blocks);
}

class RopeComparison {
 public:
  RopeComparison(const Client& client, const v1::ResolvedEncoding& base,
                 const v1::ResolvedEncoding& model, Differences* out)
      : client_(client), base_(base), model_(model), out_(*out) {}

  absl::Status Run() && {
    if (absl::Status status = CompareWidths(); !status.ok()) return status;
    if (absl::Status status = CompareFrequencies(); !status.ok()) return status;
    out_.Differ("base-pairing-differs",
                FindPlace(model_, "rotation") == nullptr ? "kind" : "rotation", "rotation",
                model_.rotation(), base_.rotation(), PairingEffect());
    const auto channels = [](const v1::ResolvedEncoding& encoding) {
      return std::string(encoding.rotary_channels_last() ? "the last" : "the first");
    };
    out_.Differ("base-pairing-differs", "kind", "what rotates of a head's channels",
                channels(model_), channels(base_));
    if (absl::Status status = CompareAxes(); !status.ok()) return status;
    CompareQueryScale();
    return absl::OkStatus();
  }

 private:
  const v1::RopeSpec& base() const { return base_.spec().rope(); }
  const v1::RopeSpec& model() const { return model_.spec().rope(); }

  absl::Status CompareWidths() {
    const absl::StatusOr<std::string> effect =
        FrequencyEffect(client_, base_.spec(), model_.spec());
    if (!effect.ok()) return effect.status();
    const v1::FactPlace* head = FindPlace(model_, "head_dim");
    const v1::FactPlace* rotary = FindPlace(model_, "rotary_dim");
    const bool one_key =
        head != nullptr && rotary != nullptr && head->pointer() == rotary->pointer();
    const bool both =
        model().head_dim() != base().head_dim() && model().rotary_dim() != base().rotary_dim();
    const std::string rotary_too =
        absl::StrCat("rotary_dim ", model().rotary_dim(), " (base ", base().rotary_dim(), ")");
    constexpr char kRule[] = "base-rotary-dim-differs";
    // A quotient, of which the one or the other number is another.
    const bool by_heads = !IsSaidOtherwise("head_dim") && IsSaidOtherwise("num_attention_heads");
    out_.Differ(kRule, by_heads ? "num_attention_heads" : "head_dim", "head_dim",
                model().head_dim(), base().head_dim(),
                both && one_key ? Joined({rotary_too, *effect}) : "");
    if (both && one_key) return absl::OkStatus();
    out_.Differ(kRule, "rotary_dim", "rotary_dim", model().rotary_dim(), base().rotary_dim(),
                *effect);
    return absl::OkStatus();
  }

  // What the base of the frequencies and their scheme do, each without the other.
  absl::Status CompareFrequencies() {
    const absl::StatusOr<std::string> of_theta =
        EffectAlone(WithTheta(base_.spec(), model().rope_theta()));
    if (!of_theta.ok()) return of_theta.status();
    const absl::StatusOr<std::string> of_scheme = EffectAlone(SchemeFor(model_.spec(), base()));
    if (!of_scheme.ok()) return of_scheme.status();
    out_.Differ("base-theta-differs", "rope_theta", "rope_theta", model().rope_theta(),
                base().rope_theta(), *of_theta);
    if (out_.Differ("base-scheme-differs", "rope_type", "rope_type", model_.rope_type(),
                    base_.rope_type(), Joined({*of_scheme, Multipliers()})) ||
        out_.Differ("base-scheme-differs", "rope_type", "variant", model_.variant(),
                    base_.variant(), Joined({*of_scheme, Multipliers()}))) {
      return absl::OkStatus();
    }
    CompareParameters(*of_scheme);
    return absl::OkStatus();
  }

  // Of a spec that is neither the base's nor the model's: one that is refused has none.
  absl::StatusOr<std::string> EffectAlone(const v1::EncodingSpec& spec) const {
    absl::StatusOr<std::string> effect = FrequencyEffect(client_, base_.spec(), spec);
    if (absl::IsInvalidArgument(effect.status())) return "";
    return effect;
  }

  // What multiplies differs: "attention_factor is 1, in the base 1.21, scores times 0.68".
  std::string Multipliers() const {
    std::vector<std::string> parts;
    const auto add = [&](absl::string_view name, double model, double base, double scores) {
      if (model == base) return;
      parts.push_back(absl::StrCat(name, " is ", ExactDouble(model), ", in the base ",
                                   ExactDouble(base), ", scores times ", FactorText(scores)));
    };
    const double model = model_.attention_factor();
    const double base = base_.attention_factor();
    // A score is a product of a query and a key, both multiplied.
    add("attention_factor", model, base, (model / base) * (model / base));
    add("softmax_scale_multiplier", model_.softmax_scale_multiplier(),
        base_.softmax_scale_multiplier(),
        model_.softmax_scale_multiplier() / base_.softmax_scale_multiplier());
    return Joined(parts);
  }

  // Whether the two files say a parameter of the scaling otherwise.
  bool IsSaidOtherwise(const std::string& fact) const {
    const v1::FactPlace* here = FindPlace(model_, fact);
    const v1::FactPlace* there = FindPlace(base_, fact);
    return (here == nullptr ? "" : here->found()) != (there == nullptr ? "" : there->found());
  }

  // Parameters of one scheme: those of the frequencies, and those that only multiply.
  void CompareParameters(const std::string& effect) {
    const FieldDescriptor* scaling = SetFieldOf(model(), "scaling");
    const bool same_scheme = scaling != nullptr && scaling == SetFieldOf(base(), "scaling");
    std::vector<std::string> multipliers;
    if (same_scheme) {
      for (absl::string_view name : kMultipliers) {
        std::string fact = absl::StrCat(scaling->name(), ".", name);
        if (IsSaidOtherwise(fact)) multipliers.push_back(std::move(fact));
      }
    }
    const std::string multiplied = Multipliers();
    bool follows = false;  // what multiplies, from what scales
    if (same_scheme) {
      const bool has_own = !multipliers.empty();
      follows = CompareScaling(*scaling, Joined({effect, has_own ? "" : multiplied})) && !has_own;
    }
    if (multiplied.empty() || follows) return;
    if (multipliers.empty()) multipliers = {"kind"};
    v1::Finding& finding = out_.Add(kAttention, multiplied, std::move(multipliers), "scaling");
    finding.set_found(ExactDouble(model_.attention_factor()));
    finding.set_expected(ExactDouble(base_.attention_factor()));
  }

  // Whether they differ.
  bool CompareScaling(const FieldDescriptor& scaling, const std::string& effect) {
    const auto* reflection = v1::RopeSpec::GetReflection();
    const google::protobuf::Message& of_base = reflection->GetMessage(base(), &scaling);
    const google::protobuf::Message& of_model = reflection->GetMessage(model(), &scaling);
    std::vector<FieldDifference> fields = DifferingFields(of_base, of_model);
    fields.erase(std::remove_if(fields.begin(), fields.end(),
                                [](const FieldDifference& field) {
                                  // Nobody asked for a length: it is one of the others.
                                  return field.name == "sequence_length" ||
                                         absl::c_linear_search(kMultipliers, field.name);
                                }),
                 fields.end());
    if (fields.empty()) return false;
    std::vector<std::string> facts = FactsOf(absl::StrCat(scaling.name(), "."), fields);
    v1::Finding& finding = out_.Add("base-scaling-differs", Joined({TextOf(fields), effect}),
                                    std::move(facts), "scaling");
    finding.set_found(CompactJson(of_model));
    finding.set_expected(CompactJson(of_base));
    return true;
  }

  absl::Status CompareAxes() {
    const absl::StatusOr<std::string> axes = AxisEffect(client_, base_, model_);
    if (!axes.ok()) return axes.status();
    out_.Differ("base-mrope-differs", model_.has_mrope() ? "mrope_section" : "scaling", "mrope",
                MropeText(model_), MropeText(base_), *axes);
    return absl::OkStatus();
  }

  // Half of the head away, or beside it: which channel turns with channel 0.
  std::string PairingEffect() const {
    const auto partner = [](const v1::ResolvedEncoding& encoding) -> int64_t {
      const bool half = absl::StartsWith(encoding.rotation(), "half");
      return half ? encoding.spec().rope().rotary_dim() / 2 : 1;
    };
    if (partner(model_) == partner(base_)) return "the same channels turn together";
    return absl::StrCat("channel 0 turns with channel ", partner(model_), ", in the base with ",
                        partner(base_));
  }

  void CompareQueryScale() {
    const auto text = [](const v1::ResolvedEncoding& encoding) {
      return encoding.has_query_scale() ? CompactJson(encoding.query_scale()) : "none";
    };
    if (text(model_) == text(base_)) return;
    std::vector<std::string> facts = {"query_scale"};
    std::string what = absl::StrCat("query_scale is ", text(model_), ", in the base ", text(base_));
    if (model_.has_query_scale() && base_.has_query_scale()) {
      const std::vector<FieldDifference> fields =
          DifferingFields(base_.query_scale(), model_.query_scale());
      what = absl::StrCat("query_scale: ", TextOf(fields));
      facts = FactsOf("query_scale.", fields);
      // The training length of the scaling is that of the queries too, which it has said.
      const v1::FactPlace* place = FindPlace(model_, facts.front());
      if (facts.size() == 1 && place != nullptr && out_.Has(place->pointer())) return;
    }
    const int64_t end = std::max(model_.max_position_embeddings(), base_.max_position_embeddings());
    if (end > 0) {
      absl::StrAppend(&what, "; at position ", end - 1, " queries times ",
                      FactorText(QueryFactor(model_, end - 1)), ", in the base ",
                      FactorText(QueryFactor(base_, end - 1)));
    }
    v1::Finding& finding = out_.Add(kAttention, what, std::move(facts), "kind");
    finding.set_found(text(model_));
    finding.set_expected(text(base_));
  }

  const Client& client_;
  const v1::ResolvedEncoding& base_;
  const v1::ResolvedEncoding& model_;
  Differences& out_;
};

}  // namespace

absl::Status CompareRope(const Client& client, const v1::ResolvedEncoding& base,
                         const v1::ResolvedEncoding& model, Differences* differences) {
  return RopeComparison(client, base, model, differences).Run();
}

}  // namespace posenc::cli
