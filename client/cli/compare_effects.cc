#include "client/cli/compare_effects.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
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
  const std::string differ = absl::StrFormat("%d of %d %s differ, from %s %d", count, base.size(),
                                             wording.things, wording.first, first);
  // What became 0 has no ratio.
  return worst == 1 ? differ : absl::StrCat(differ, ", by up to ", FactorText(worst), "x");
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

// The first length at which the frequencies of a scaling are others than those of short sequences,
// or one well beyond it; 0 where they do not depend on it, or the spec is for a long one.
int64_t LongLength(const v1::RopeSpec& rope) {
  const v1::LongRopeScaling& longrope = rope.longrope();
  const v1::DynamicScaling& dynamic = rope.dynamic();
  if (rope.has_longrope() &&
      longrope.sequence_length() <= longrope.original_max_position_embeddings()) {
    return longrope.original_max_position_embeddings() + 1;
  }
  const bool grows =
      rope.has_dynamic() && dynamic.sequence_length() <= dynamic.max_position_embeddings();
  return grows ? 2 * dynamic.max_position_embeddings() : 0;
}

v1::EncodingSpec AtLength(v1::EncodingSpec spec, int64_t length) {
  if (spec.rope().has_longrope()) {
    spec.mutable_rope()->mutable_longrope()->set_sequence_length(length);
  } else if (spec.rope().has_dynamic()) {
    spec.mutable_rope()->mutable_dynamic()->set_sequence_length(length);
  }
  return spec;
}

// The bucket of a distance, by the smallest distance of each.
int64_t BucketOf(const google::protobuf::RepeatedField<int64_t>& first_distances,
                 int64_t distance) {
  return std::upper_bound(first_distances.begin(), first_distances.end(), distance) -
         first_distances.begin();
}

}  // namespace

std::string FactorText(double factor) {
  constexpr int kDigits = 3;
  const double off = std::fabs(factor - 1);
  const int zeros = off > 0 && off < 0.1 ? static_cast<int>(-std::log10(off)) : 0;
  return absl::StrFormat("%.*g", kDigits + zeros, factor);
}

absl::StatusOr<std::string> FrequencyEffect(const Client& client, const v1::EncodingSpec& base,
                                            const v1::EncodingSpec& model) {
  const auto effect_of = [&](const v1::EncodingSpec& a, const v1::EncodingSpec& b) {
    return DescribedEffect(client, a, b, &v1::DescribeTableResponse::inv_freq,
                           {.things = "frequencies", .first = "pair"});
  };
  const absl::StatusOr<std::string> effect = effect_of(base, model);
  if (!effect.ok()) return effect;
  // Of two lengths the shorter one too: beyond it one of the two is another already.
  for (const int64_t length : std::set{LongLength(base.rope()), LongLength(model.rope())}) {
    if (length == 0) continue;
    const absl::StatusOr<std::string> when_long =
        effect_of(AtLength(base, length), AtLength(model, length));
    // A length that the spec refuses (its base would leave float32) has no effect to tell.
    if (absl::IsInvalidArgument(when_long.status())) continue;
    if (!when_long.ok()) return when_long;
    if (when_long->empty() || *when_long == *effect) continue;
    return absl::StrCat(*effect, effect->empty() ? "" : "; ", "at ", length, " positions ",
                        *when_long);
  }
  return effect;
}

absl::StatusOr<std::string> BucketEffect(const Client& client, const v1::EncodingSpec& base,
                                         const v1::EncodingSpec& model) {
  const absl::StatusOr<v1::DescribeTableResponse> of_base = Describe(client, base);
  if (!of_base.ok()) return of_base.status();
  const absl::StatusOr<v1::DescribeTableResponse> of_model = Describe(client, model);
  if (!of_model.ok()) return of_model.status();
  const auto& base_buckets = of_base->bucket_first_distance();
  const auto& model_buckets = of_model->bucket_first_distance();
  // Beyond the larger of the two every distance is in a last bucket. Between two of these, which
  // may be far apart, nothing changes.
  const int64_t distances = std::max(base.t5().max_distance(), model.t5().max_distance());
  std::set<int64_t> edges(base_buckets.begin(), base_buckets.end());
  edges.insert(model_buckets.begin(), model_buckets.end());
  edges.erase(edges.lower_bound(distances), edges.end());
  int64_t count = 0;
  int64_t first = 0;
  int64_t end = distances;
  for (auto begin = edges.rbegin(); begin != edges.rend(); ++begin) {
    if (BucketOf(base_buckets, *begin) != BucketOf(model_buckets, *begin)) {
      count += end - *begin;
      first = *begin;
    }
    end = *begin;
  }
  if (count == 0) return "";
  return absl::StrCat(count, " of ", distances, " distances have another bucket, from distance ",
                      first);
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
