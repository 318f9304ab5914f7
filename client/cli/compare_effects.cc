#include "client/cli/compare_effects.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace posenc::cli {
namespace {

// A power of a rounded base is off by some 2^-22; the slopes are of one real number.
constexpr double kSlopeRounding = 0x1p-20;

// How two lists of one thing differ: relative differences up to `rounding` are none.
struct Wording {
  absl::string_view things;  // frequencies
  absl::string_view first;   // pair
  double rounding = 0;
};

std::string Effect(const std::vector<double>& base, const std::vector<double>& model,
                   const Wording& wording) {
  if (base.size() != model.size()) {
    return absl::StrCat(model.size(), " ", wording.things, ", base ", base.size());
  }
  size_t first = base.size();
  size_t count = 0;
  double worst = 1.0;
  for (size_t i = 0; i < base.size(); ++i) {
    if (std::fabs(base[i] - model[i]) <= wording.rounding * std::fabs(base[i])) continue;
    first = std::min(first, i);
    ++count;
    const double ratio = base[i] / model[i];
    if (std::isfinite(ratio) && ratio > 0) worst = std::max({worst, ratio, 1 / ratio});
  }
  if (count == 0) return "";
  return absl::StrFormat("%d of %d %s differ, from %s %d, by up to %.3gx", count, base.size(),
                         wording.things, wording.first, first, worst);
}

absl::StatusOr<v1::DescribeTableResponse> Describe(const Client& client,
                                                   const v1::EncodingSpec& spec) {
  v1::DescribeTableRequest request;
  *request.mutable_spec() = spec;
  return client.DescribeTable(request);
}

using Numbers = google::protobuf::RepeatedField<double>;

absl::StatusOr<std::string> DescribedEffect(const Client& client, const v1::EncodingSpec& base,
                                            const v1::EncodingSpec& model,
                                            const Numbers& (v1::DescribeTableResponse::*numbers)()
                                                const,
                                            const Wording& wording) {
  const absl::StatusOr<v1::DescribeTableResponse> of_base = Describe(client, base);
  if (!of_base.ok()) return of_base.status();
  const absl::StatusOr<v1::DescribeTableResponse> of_model = Describe(client, model);
  if (!of_model.ok()) return of_model.status();
  const auto list = [&](const v1::DescribeTableResponse& response) {
    const Numbers& values = (response.*numbers)();
    return std::vector<double>(values.begin(), values.end());
  };
  return Effect(list(*of_base), list(*of_model), wording);
}

}  // namespace

absl::StatusOr<std::string> FrequencyEffect(const Client& client, const v1::EncodingSpec& base,
                                            const v1::EncodingSpec& model) {
  return DescribedEffect(client, base, model, &v1::DescribeTableResponse::inv_freq,
                         {.things = "frequencies", .first = "pair"});
}

absl::StatusOr<std::string> SlopeEffect(const Client& client, const v1::EncodingSpec& base,
                                        const v1::EncodingSpec& model) {
  return DescribedEffect(client, base, model, &v1::DescribeTableResponse::slopes,
                         {.things = "slopes", .first = "head", .rounding = kSlopeRounding});
}

bool IsRowConstant(const v1::AlibiSpec& alibi) {
  const v1::AlibiForm form = alibi.form();
  return alibi.slope_rounding() != v1::SLOPE_ROUNDING_FALCON_BF16 &&
         (form == v1::ALIBI_FORM_RELATIVE_CAUSAL || form == v1::ALIBI_FORM_KEY_POSITION ||
          form == v1::ALIBI_FORM_LAST_ROW || form == v1::ALIBI_FORM_KEY_MASK);
}

}  // namespace posenc::cli
