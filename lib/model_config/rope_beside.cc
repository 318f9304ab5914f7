#include "lib/model_config/rope_beside.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/resolve.h"

namespace posenc {
namespace {

v1::MropeScheme SchemeOf(absl::string_view name) {
  if (name == "interleaved") return v1::MROPE_SCHEME_INTERLEAVED;
  if (name == "ernie") return v1::MROPE_SCHEME_ERNIE;
  if (name == "glm") return v1::MROPE_SCHEME_GLM;
  if (name == "openpangu") return v1::MROPE_SCHEME_OPENPANGU;
  return name == "xdrope" ? v1::MROPE_SCHEME_XDROPE : v1::MROPE_SCHEME_CONTIGUOUS;
}

// The family has one axis, whatever the map says of several.
void NoteUnreadAxes(const ScalingInput& input) {
  for (absl::string_view key : {"mrope_section", "mrope_interleaved", "xdrope_section"}) {
    const JsonValue value = input.keys.Find(key);
    if (!value.has_value()) continue;
    input.tower.findings.Add(Rule::kRopeKeyIgnored, value,
                             {.message = absl::StrCat("This family's positions have one axis; ",
                                                      key, " changes nothing here.")});
  }
}

// Another model around the family's decoder may have positions of one axis (MiniCPM-V 4.6).
bool IsOfOwnModel(const Tower& tower) {
  const JsonValue type = tower.keys.parent()["model_type"];
  return !tower.nested || !type.is_string() || HasName(tower.family.model_types, type.string());
}

// The class of transformers has sections of its own, or fails; other stacks ask whether the file
// has any.
void NoteMissingSections(const ScalingInput& input, const std::vector<int64_t>& sections) {
  const Tower& tower = input.tower;
  const bool xdrope = tower.family.rope.mrope_scheme == "xdrope";
  const absl::string_view key = xdrope ? "xdrope_section" : "mrope_section";
  const bool in_map = IsGiven(input.keys.map);
  tower.findings.AddMissing(
      Rule::kMropeMissing, in_map ? input.keys.map : tower.keys,
      in_map                  ? key
      : tower.family.since_v5 ? "rope_parameters"
                              : "rope_scaling",
      {.message = absl::StrCat(
           key,
           " is not in the file: vLLM takes that for positions of one axis, and gives images "
           "those of text. ",
           sections[0] == 0 ? "One axis is used here."
                            : absl::StrCat("The family's own, ", absl::StrJoin(sections, ", "),
                                           ", are used here.")),
       .expected = std::string(key)});
}

// The class interleaves whatever the file says.
void NoteNotInterleaved(const ScalingInput& input) {
  constexpr absl::string_view kKey = "mrope_interleaved";
  const JsonValue value = input.keys.map[kKey];
  const FindingText text = {
      .message = absl::StrCat("mrope_interleaved is ", value.present() ? value.Text() : "not given",
                              ": vLLM then has the sections in a row, transformers' class "
                              "interleaves them all the same",
                              value.has_value() ? "." : ", as here."),
      .expected = "true",
      .fix = MemberText(kKey, "true")};
  if (value.present()) {
    input.tower.findings.Add(Rule::kMropeMissing, value, text);
  } else {
    input.tower.findings.AddMissing(Rule::kMropeMissing, input.keys.map, kKey, text);
  }
}

}  // namespace

v1::EncodingSpec MropeSpecOf(const v1::ResolvedEncoding& encoding) {
  v1::EncodingSpec spec;
  v1::MropeSpec& mrope = *spec.mutable_mrope();
  *mrope.mutable_rope() = encoding.spec().rope();
  *mrope.mutable_mrope_section() = encoding.mrope().sections();
  mrope.set_scheme(SchemeOf(encoding.mrope().scheme()));
  return spec;
}

v1::EncodingSpec SpecFor(const v1::ResolvedEncoding& encoding, const v1::Selection& selection,
                         v1::Layout layout) {
  const bool by_axis = selection.has_axis_position_ids() || selection.has_token_runs() ||
                       layout == v1::LAYOUT_POSITION_IDS;
  const bool has_axes = encoding.has_mrope() && encoding.spec().has_rope();
  return by_axis && has_axes ? MropeSpecOf(encoding) : encoding.spec();
}

absl::Status SetMrope(const ScalingInput& input, v1::ResolvedEncoding* encoding) {
  const Tower& tower = input.tower;
  const RopeKeys& keys = input.keys;
  const RopeTraits& traits = tower.family.rope;
  JsonValue list = keys.Find("mrope_section");
  const bool pangu = input.type.written == "openpangu";
  // A family that nobody knows here has axes where its file gives their sections.
  const bool unknown = tower.family.model_types.empty() && list.has_value();
  if (traits.mrope_scheme.empty() && !pangu && !unknown) {
    NoteUnreadAxes(input);
    return absl::OkStatus();
  }
  if (!list.has_value()) list = keys.Find("xdrope_section");
  std::vector<int64_t> sections(traits.mrope_section.begin(), traits.mrope_section.end());
  if (!list.has_value() && !pangu && IsOfOwnModel(tower)) NoteMissingSections(input, sections);
  if (list.has_value()) {
    ASSIGN_OR_RETURN(sections, ReadInts(list));
  } else if (pangu) {
    return FieldError(keys.map.FieldOf("mrope_section"), "is required for rope_type openpangu");
  } else if (sections[0] == 0) {
    return absl::OkStatus();
  }
  int64_t sum = 0;
  for (const int64_t section : sections) sum += section;
  const int64_t frequencies = encoding->spec().rope().rotary_dim() / 2;
  if (sum != frequencies) {
    const std::string sums = absl::StrCat("sum to the ", frequencies, " frequencies of a head");
    if (list.present()) {
      return FieldError(list.field(), absl::StrCat("must ", sums, ", sums to ", sum));
    }
    const std::string own =
        absl::StrCat("the family's own, ", absl::StrJoin(sections, ", "), ", does not ", sums);
    if (keys.map.present()) {
      return FieldError(keys.map.FieldOf("mrope_section"), absl::StrCat("is required: ", own));
    }
    return FieldError(
        tower.keys.FieldOf(tower.family.since_v5 ? "rope_parameters" : "rope_scaling"),
        absl::StrCat("is required, with an mrope_section in it: ", own));
  }
  v1::MropeSections& mrope = *encoding->mutable_mrope();
  mrope.mutable_sections()->Assign(sections.begin(), sections.end());
  ASSIGN_OR_RETURN(const std::optional<bool> interleaved, ReadBool(keys.Find("mrope_interleaved")));
  std::string scheme(traits.mrope_scheme);
  if (scheme.empty()) scheme = "contiguous";
  if (list.has_value() && scheme == "interleaved" && !interleaved.value_or(false)) {
    NoteNotInterleaved(input);
  }
  if (interleaved.has_value() && scheme != "ernie" && scheme != "xdrope") {
    scheme = *interleaved ? "interleaved" : "contiguous";
  }
  if (pangu) scheme = "openpangu";
  mrope.set_scheme(scheme);
  return absl::OkStatus();
}

absl::Status SetQueryScale(const ScalingInput& input, v1::ResolvedEncoding* encoding) {
  const JsonValue& keys = input.tower.keys;
  switch (input.tower.family.rope.query_scale) {
    case QueryScaleRule::kNone:
      return absl::OkStatus();
    case QueryScaleRule::kQwen: {
      ASSIGN_OR_RETURN(const bool logn, ReadQwenSwitch(input.tower, "use_logn_attn"));
      ASSIGN_OR_RETURN(const std::optional<int64_t> length, ReadPositiveInt(keys["seq_length"]));
      if (!logn || !length.has_value()) return absl::OkStatus();
      v1::QueryScale& query = *encoding->mutable_query_scale();
      query.set_rule("logn");
      query.set_length(*length);
      return absl::OkStatus();
    }
    case QueryScaleRule::kLlama4: {
      // A number in real files, 4: the class only asks whether it is true.
      const JsonValue tuning = keys["attn_temperature_tuning"];
      if (!tuning.is_number()) {
        RETURN_IF_ERROR(ReadBool(tuning).status());
      }
      if (tuning.has_value() && !tuning.truthy()) return absl::OkStatus();
      ASSIGN_OR_RETURN(const std::optional<double> scale, ReadNumber(keys["attn_scale"]));
      ASSIGN_OR_RETURN(const std::optional<int64_t> floor, ReadPositiveInt(keys["floor_scale"]));
      v1::QueryScale& query = *encoding->mutable_query_scale();
      query.set_rule("floor_log");
      query.set_beta(scale.value_or(0.1));
      query.set_length(floor.value_or(8192));
      query.set_shift(1);
      query.set_nope_layers_only(true);
      return absl::OkStatus();
    }
    case QueryScaleRule::kMinistral: {
      ASSIGN_OR_RETURN(const std::optional<double> beta,
                       ReadNumber(input.keys.Find("llama_4_scaling_beta")));
      if (!beta.has_value()) return absl::OkStatus();
      ASSIGN_OR_RETURN(const int64_t original, OriginalLength(input));
      v1::QueryScale& query = *encoding->mutable_query_scale();
      query.set_rule("floor_log");
      query.set_beta(*beta);
      query.set_length(original);
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace posenc
