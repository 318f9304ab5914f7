#include "client/cli/compare.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/compare_effects.h"
#include "client/cli/compare_layers.h"
#include "client/cli/compare_places.h"
#include "client/cli/compare_rope.h"
#include "client/cli/compare_tables.h"
#include "client/cli/json.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/message_differencer.h"

namespace posenc::cli {
namespace {

using google::protobuf::FieldDescriptor;

// Of a grid of patches that is another size than the rows were trained for.
constexpr absl::string_view kResampled =
    "its rows are resampled: by the new size, or by a ratio with 0.1 added, as DINOv2's first code "
    "has it, which are two tables; table_resample says which";

// The differences of two encodings of one tower and layer type.
class Comparison {
 public:
  Comparison(const v1::ResolvedEncoding& base, const v1::ResolvedEncoding& model)
      : base_(base), model_(model), out_(base, model) {}

  absl::StatusOr<std::vector<Difference>> Run(const Client& client) && {
    if (out_.Differ("base-kind-differs", "kind", "kind", model_.kind(), base_.kind())) {
      SetSwitchPlace(model_, base_.kind(), &out_.all().back().finding);
      return std::move(out_.all());
    }
    absl::Status compared;
    if (base_.spec().has_rope() && model_.spec().has_rope()) {
      compared = CompareRope(client, base_, model_, &out_);
    } else if (base_.spec().has_alibi() && model_.spec().has_alibi()) {
      compared = CompareAlibi(client);
    } else {
      compared = CompareOther(client);
    }
    if (!compared.ok()) return compared;
    CompareLengths();
    return std::move(out_.all());
  }

 private:
  // What is constant along a row leaves a softmax as it is, and the roundings of a slope are of
  // one real number: neither is the mistake that another slope is.
  absl::Status CompareAlibi(const Client& client) {
    out_.Differ("base-attention-differs", "kind", "bias_scale", model_.bias_scale(),
                base_.bias_scale());
    const v1::AlibiSpec& base = base_.spec().alibi();
    const v1::AlibiSpec& model = model_.spec().alibi();
    const std::vector<FieldDifference> differing = DifferingFields(base, model);
    const std::string fields = TextOf(differing);
    if (fields.empty()) return absl::OkStatus();
    std::vector<std::string> facts = FactsOf("", differing);
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
    v1::Finding& finding =
        out_.Add("base-spec-differs", absl::StrCat(fields, "; ", effect), std::move(facts), "kind");
    if (alike) finding.set_severity(v1::SEVERITY_WARNING);
    finding.set_found(CompactJson(model_.spec()));
    finding.set_expected(CompactJson(base_.spec()));
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
      out_.Differ("base-spec-differs", "kind", "the encoding", CompactJson(model_.spec()),
                  CompactJson(base_.spec()));
      return absl::OkStatus();
    }
    const absl::StatusOr<std::string> effect = SpecEffect(client);
    if (!effect.ok()) return effect.status();
    const auto* reflection = v1::EncodingSpec::GetReflection();
    const google::protobuf::Message& base = reflection->GetMessage(base_.spec(), family);
    const google::protobuf::Message& model = reflection->GetMessage(model_.spec(), family);
    const std::vector<FieldDifference> fields = DifferingFields(base, model);
    std::vector<std::string> facts = FactsOf("", fields);
    v1::Finding& finding = out_.Add(
        "base-spec-differs", absl::StrCat(TextOf(fields), effect->empty() ? "" : "; ", *effect),
        std::move(facts), "kind");
    finding.set_found(CompactJson(model));
    finding.set_expected(CompactJson(base));
    return absl::OkStatus();
  }

  // Neither has a table of one RoPE: a difference is one of the messages.
  absl::Status CompareOther(const Client& client) {
    const auto& same = google::protobuf::util::MessageDifferencer::Equals;
    if (!same(base_.spec(), model_.spec())) {
      if (absl::Status status = CompareSpecs(client); !status.ok()) return status;
    } else if (!same(base_.axial(), model_.axial())) {  // which the spec is made from
      out_.Differ("base-spec-differs", "kind", "the grid", CompactJson(model_.axial()),
                  CompactJson(base_.axial()));
    }
    if (!same(base_.learned(), model_.learned())) {
      const bool resampled = !base_.learned().grid().empty() && !model_.learned().grid().empty() &&
                             base_.learned().dim() == model_.learned().dim();
      AddTable("the learned table", "max_position_embeddings", base_.learned(), model_.learned(),
               resampled ? kResampled : "");
    }
    // A table of as many entries as there are buckets has been said with these.
    const bool buckets = base_.spec().has_t5() && !out_.all().empty();
    if (!buckets && !same(base_.relative(), model_.relative())) {
      AddTable("the relative table", "kind", base_.relative(), model_.relative(), "");
    }
    return absl::OkStatus();
  }

  void AddTable(absl::string_view what, absl::string_view fact,
                const google::protobuf::Message& base, const google::protobuf::Message& model,
                absl::string_view effect) {
    v1::Finding& finding = out_.Add("base-spec-differs",
                                    absl::StrCat(what, ": ", TextOf(DifferingFields(base, model)),
                                                 effect.empty() ? "" : "; ", effect),
                                    {std::string(fact)}, "kind");
    finding.set_found(CompactJson(model));
    finding.set_expected(CompactJson(base));
  }

  // A dynamic scaling is measured against this length, which it has said then.
  void CompareLengths() {
    constexpr char kLength[] = "max_position_embeddings";
    const v1::FactPlace* place = FindPlace(model_, kLength);
    if (place != nullptr && out_.Has(place->pointer())) return;
    if (out_.Differ("base-length-differs", kLength, kLength, model_.max_position_embeddings(),
                    base_.max_position_embeddings())) {
      out_.all().back().finding.set_severity(v1::SEVERITY_WARNING);
    }
  }

  const v1::ResolvedEncoding& base_;
  const v1::ResolvedEncoding& model_;
  Differences out_;
};

// Of layers of several types, one key's difference is one finding.
void Merge(std::vector<Difference> more, std::vector<Difference>* differences) {
  for (Difference& difference : more) {
    const v1::Finding& finding = difference.finding;
    const auto same =
        std::find_if(differences->begin(), differences->end(), [&](const Difference& old) {
          return old.finding.rule() == finding.rule() &&
                 old.finding.message() == finding.message() &&
                 old.finding.pointer() == finding.pointer() && !finding.pointer().empty();
        });
    if (same == differences->end()) {
      differences->push_back(std::move(difference));
    } else {
      same->parts.insert(same->parts.end(), difference.parts.begin(), difference.parts.end());
    }
  }
}

Difference Missing(const v1::ResolveModelConfigResponse& model,
                   const v1::ResolvedEncoding& of_base) {
  Difference missing;
  missing.finding.set_severity(v1::SEVERITY_ERROR);
  missing.finding.set_rule("base-encoding-missing");
  missing.finding.set_expected(PartOf(of_base));
  missing.finding.set_message(absl::StrCat("the base has an encoding (", of_base.kind(), ") for ",
                                           PartOf(of_base), ", this model has none"));
  SetMissingPlace(model, of_base, &missing.finding);
  missing.base = &of_base;
  const auto tower = std::find_if(
      model.encodings().begin(), model.encodings().end(),
      [&](const v1::ResolvedEncoding& encoding) { return encoding.tower() == of_base.tower(); });
  if (tower != model.encodings().end()) missing.model = &*tower;
  missing.facts = {absl::StrCat("with:", SwitchedName(of_base)),
                   of_base.layer_type() == "all" ? "kind" : "layers"};
  return missing;
}

Difference Added(const v1::ResolvedEncoding& of_model) {
  Difference added;
  added.finding.set_severity(v1::SEVERITY_WARNING);
  added.finding.set_rule("base-encoding-added");
  added.finding.set_found(PartOf(of_model));
  added.finding.set_message(absl::StrCat("this model has an encoding (", of_model.kind(), ") for ",
                                         PartOf(of_model), ", the base has none"));
  SetSwitchPlace(of_model, SwitchedName(of_model), &added.finding);
  added.model = &of_model;
  return added;
}

}  // namespace

absl::StatusOr<std::vector<Difference>> CompareWithBase(
    const Client& client, const v1::ResolveModelConfigResponse& base,
    const v1::ResolveModelConfigResponse& model) {
  std::vector<Difference> differences;
  // Towers whose layer types are others: which layers that is follows from it.
  std::map<std::string, size_t> others;
  const EncodingPairs pairs = PairEncodings(base, model);
  for (const auto& [of_base, of_model] : pairs.of_base) {
    if (of_model == nullptr) {
      others.emplace(of_base->tower(), differences.size());
      differences.push_back(Missing(model, *of_base));
      continue;
    }
    absl::StatusOr<std::vector<Difference>> more = Comparison(*of_base, *of_model).Run(client);
    if (!more.ok()) return more.status();
    Merge(*std::move(more), &differences);
  }
  for (const v1::ResolvedEncoding* of_model : pairs.added) {
    others.emplace(of_model->tower(), differences.size());
    differences.push_back(Added(*of_model));
  }
  for (Difference& layers : CompareLayers(base, model)) {
    const auto other = others.find(layers.parts.front());
    if (other == others.end()) {
      differences.push_back(std::move(layers));
    } else {
      v1::Finding& finding = differences[other->second].finding;
      finding.set_message(absl::StrCat(finding.message(), "; ", layers.finding.message()));
    }
  }
  return differences;
}

}  // namespace posenc::cli
