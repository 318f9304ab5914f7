#include "lib/model_config/alibi_note.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "lib/model_config/fact_place.h"

namespace posenc {
namespace {

// How a code rounds its slopes says which code it is.
struct OwnForm {
  v1::SlopeRounding slope_rounding;
  absl::string_view text;
};

constexpr absl::string_view kKeyPosition =
    "slope times key position whatever the query, form ALIBI_FORM_KEY_POSITION";

constexpr std::array kOwnForms = std::to_array<OwnForm>({
    {v1::SLOPE_ROUNDING_PRESS, kKeyPosition},  // Baichuan
    {v1::SLOPE_ROUNDING_BLOOM,
     "slope times key position whatever the query, form ALIBI_FORM_KEY_POSITION "
     "(ALIBI_FORM_KEY_MASK where sequences are padded)"},
    {v1::SLOPE_ROUNDING_MPT,
     "slope times distance to the last key whatever the query, form ALIBI_FORM_LAST_ROW"},
});

}  // namespace

void AddAlibiNote(const v1::ResolvedEncoding& encoding,
                  google::protobuf::RepeatedPtrField<v1::Finding>* findings) {
  const v1::AlibiSpec& alibi = encoding.spec().alibi();
  if (alibi.form() != v1::ALIBI_FORM_RELATIVE_CAUSAL) return;
  const auto* own = std::find_if(kOwnForms.begin(), kOwnForms.end(), [&](const OwnForm& form) {
    return form.slope_rounding == alibi.slope_rounding();
  });
  if (own == kOwnForms.end()) return;
  v1::Finding& finding = *findings->Add();
  finding.set_severity(v1::SEVERITY_NOTE);
  finding.set_rule("alibi-form");
  if (const v1::FactPlace* place = FindPlace(encoding, "kind")) {
    PointAt(*place, &finding);
    finding.set_found(place->found());
  }
  finding.set_message(absl::StrCat(
      "This bias is of form ALIBI_FORM_RELATIVE_CAUSAL, 0 where key and query meet. The model's "
      "own code adds ",
      own->text,
      ": other numbers, with the same softmax but for roundings. A spec with that form "
      "gives them."));
}

}  // namespace posenc
