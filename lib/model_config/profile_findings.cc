#include "lib/model_config/profile_findings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/message.h"
#include "lib/model_config/fact_place.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {
namespace {

// Where a row holds, of files that have its key.
enum class When : uint8_t {
  kAlways,
  kLatent,      // DeepSeek and kin: a code path of their own
  kDeepseekV4,  // another one
  kTelechat3,   // a YaRN with a coefficient of its own
  kPlain,       // none of these
  kPlainPair,   // the same where mscale and mscale_all_dim decide, the family's defaults too
  kAlone,       // one of the two without the other
  kLatentAlone,
  kNamedNtk,  // rope_type ntk
  kSeveralAxes,
  kUnset,  // the file has no such key
  kGrown,  // the table's base has grown: shorter tables are the same without the key
  // The table is for another length than max_position_embeddings * factor.
  kOtherLength,
  kRounded,  // dividing positions or frequencies by it is not the same: no power of two
};

// Whether the stack has the key's meaning all the same.
enum class Heed : uint8_t { kNot, kOtherwise };

// A key of the scaling that a stack does not heed, or takes for something else.
struct UnheededKey {
  absl::string_view profile;
  absl::string_view scaling;  // the field of RopeSpec
  absl::string_view key;      // the field of the scaling
  When when;
  absl::string_view effect;
  absl::string_view unless = "";  // a value with which it makes no difference
  Heed heed = Heed::kNot;
};

constexpr absl::string_view kFormula = "multiplies by 0.1 ln(factor) + 1 instead";
constexpr absl::string_view kByLengths =
    "takes max_position_embeddings / original_max_position_embeddings instead";
constexpr absl::string_view kMultiplierByLengths = "computes it from the lengths instead";
constexpr absl::string_view kByMscales = "uses the mscale formula instead";
constexpr absl::string_view kMscaleAlone =
    "multiplies by 0.1 mscale ln(factor) + 1 without mscale_all_dim";
constexpr absl::string_view kAllDimAlone =
    "divides by 0.1 mscale_all_dim ln(factor) + 1 without mscale";
constexpr absl::string_view kDividesPositions =
    "divides positions by it, where transformers divides frequencies: values differ by roundings";
constexpr absl::string_view kUndivided = "does not divide the frequencies";
constexpr absl::string_view kUnscaled = "builds the unscaled table at every length";
constexpr absl::string_view kAlwaysTruncates = "always rounds the correction range";
constexpr absl::string_view kUnread = "does not read it";
constexpr absl::string_view kGrownWithout =
    "appends rows at load, for its context length and a margin, that are computed without it";

// As of ProfileSource.
constexpr UnheededKey kUnheededKeys[] = {
    {"vllm", "linear", "factor", When::kRounded, kDividesPositions, "", Heed::kOtherwise},
    {"vllm", "yarn", "attention_factor", When::kPlain, kFormula},
    {"vllm", "yarn", "attention_factor", When::kLatent, kByMscales},
    {"vllm", "yarn", "attention_factor", When::kDeepseekV4, "multiplies by 1 instead", "1"},
    {"vllm", "yarn", "attention_factor", When::kTelechat3,
     "multiplies by 0.07 ln(factor) + 1 instead"},
    {"vllm", "yarn", "factor", When::kTelechat3, kByLengths},
    {"vllm", "yarn", "mscale", When::kPlainPair, kFormula},
    {"vllm", "yarn", "mscale_all_dim", When::kPlainPair, kFormula},
    {"vllm", "yarn", "mscale", When::kLatentAlone, kMscaleAlone, "1"},
    {"vllm", "yarn", "mscale_all_dim", When::kLatentAlone, kAllDimAlone},
    {"vllm", "yarn", "truncate", When::kLatent, kAlwaysTruncates, "true"},
    {"vllm", "yarn", "truncate", When::kDeepseekV4, kAlwaysTruncates, "true"},
    {"vllm", "yarn", "original_max_position_embeddings", When::kSeveralAxes,
     "takes four times as much in the correction range", "", Heed::kOtherwise},
    {"vllm", "dynamic", "factor", When::kAlways, kUnscaled},
    {"vllm", "ntk", "factor", When::kNamedNtk,
     "takes factor times as many positions, for which the table has no rows"},
    {"vllm", "ntk", "alpha", When::kNamedNtk, "takes factor alone, and fails without it"},
    {"vllm", "longrope", "factor", When::kAlways, kByLengths},
    {"vllm", "longrope", "attention_factor", When::kAlways, kMultiplierByLengths},
    {"vllm", "proportional", "factor", When::kAlways, kUndivided, "1"},

    {"sglang", "linear", "factor", When::kRounded, kDividesPositions, "", Heed::kOtherwise},
    {"sglang", "linear", "factor", When::kAlways, kGrownWithout},
    {"sglang", "yarn", "factor", When::kAlways, kGrownWithout},
    {"sglang", "dynamic", "factor", When::kGrown, kGrownWithout},
    {"sglang", "yarn", "attention_factor", When::kPlain, kByMscales},
    {"sglang", "yarn", "attention_factor", When::kLatent, kByMscales},
    {"sglang", "yarn", "mscale", When::kLatentAlone, kMscaleAlone, "1"},
    {"sglang", "yarn", "mscale_all_dim", When::kLatentAlone, kAllDimAlone},
    {"sglang", "yarn", "truncate", When::kLatent, kAlwaysTruncates, "true"},
    {"sglang", "dynamic", "factor", When::kOtherLength,
     "scales for factor times the trained length, whatever the sequence"},
    {"sglang", "longrope", "factor", When::kAlways, kByLengths},
    {"sglang", "longrope", "attention_factor", When::kAlways, kMultiplierByLengths},
    {"sglang", "proportional", "factor", When::kAlways, kUndivided, "1"},

    {"trtllm", "yarn", "attention_factor", When::kAlways, kByMscales},
    {"trtllm", "yarn", "attn_factor", When::kAlways, kUnread},
    {"trtllm", "yarn", "mscale", When::kAlone, kMscaleAlone, "1"},
    {"trtllm", "yarn", "truncate", When::kAlways, kAlwaysTruncates, "true"},
    {"trtllm", "dynamic", "factor", When::kAlways, kUnscaled},
    {"trtllm", "longrope", "factor", When::kAlways, kByLengths},
    {"trtllm", "longrope", "attention_factor", When::kAlways, kMultiplierByLengths},

    {"onnx", "yarn", "attention_factor", When::kAlways, kByMscales},
    {"onnx", "yarn", "attn_factor", When::kAlways, kUnread},
    {"onnx", "yarn", "mscale", When::kAlone, "multiplies by mscale itself"},
    {"onnx", "yarn", "truncate", When::kAlways, "never rounds the correction range", "false"},
    {"onnx", "yarn", "beta_fast", When::kUnset, "exports no YaRN where it is missing"},
    {"onnx", "longrope", "attention_factor", When::kAlways, kMultiplierByLengths},

    {"hf", "yarn", "attn_factor", When::kAlways, kUnread},
};

// Which of a LongRoPE's rows a stack takes, by the training length.
struct LongRopeUse {
  absl::string_view profile;
  absl::string_view before;
  absl::string_view after;
};
constexpr LongRopeUse kLongRopeUses[] = {
    {"vllm", "takes the long rows for all positions once max_model_len exceeds ",
     ", else the short ones"},
    {"sglang", "takes the long rows for a batch once a position exceeds ",
     ", one later than transformers"},
    {"trtllm", "builds all rows by the long list where max_seq_len exceeds ",
     ", else by the short one"},
    {"onnx", "writes two tables, of short rows for sequences of at most ",
     " positions and of long rows for others"},
};

// Whether the scaling of `rope` is the field `name`.
bool HasScaling(const v1::RopeSpec& rope, absl::string_view name) {
  const auto* field = v1::RopeSpec::descriptor()->FindFieldByName(std::string(name));
  return field != nullptr && v1::RopeSpec::GetReflection()->HasField(rope, field);
}

// Where the file has the key of a scaling; null where it has none, and the spec's value is
// computed, or the family's.
const v1::FactPlace* PlaceOf(const v1::ResolvedEncoding& encoding, absl::string_view scaling,
                             absl::string_view key) {
  const std::string fact = absl::StrCat(scaling, ".", key);
  for (const v1::FactPlace& place : encoding.places()) {
    if (place.fact() == fact) return &place;
  }
  return nullptr;
}

// 1 and 1.0 alike.
bool IsSame(absl::string_view found, absl::string_view value) {
  double a = 0;
  double b = 0;
  const bool numbers = absl::SimpleAtod(found, &a) && absl::SimpleAtod(value, &b);
  return numbers ? a == b : found == value;
}

// Whether factor has any part in a dynamic table.
bool HasGrown(const v1::DynamicScaling& dynamic) {
  return dynamic.sequence_length() > dynamic.max_position_embeddings();
}

bool IsOfOtherLength(const v1::DynamicScaling& dynamic) {
  const double length = static_cast<double>(dynamic.max_position_embeddings());
  const auto asked = std::max(dynamic.sequence_length(), dynamic.max_position_embeddings());
  return static_cast<double>(asked) != std::ceil(length * dynamic.factor());
}

bool Holds(const UnheededKey& row, const v1::ResolvedEncoding& encoding, const v1::RopeSpec& rope) {
  if (!HasScaling(rope, row.scaling)) return false;
  const v1::YarnScaling& yarn = rope.yarn();
  const bool deepseek_v4 = encoding.model_type() == "deepseek_v4";
  const bool telechat3 = encoding.variant() == "yarn_telechat3";
  const bool latent = encoding.rotary_channels_last() && !deepseek_v4;
  const bool plain = !latent && !deepseek_v4 && !telechat3;
  const auto in_file = [&](absl::string_view key) {
    return PlaceOf(encoding, row.scaling, key) != nullptr;
  };
  const bool alone = in_file("mscale") != in_file("mscale_all_dim");
  const v1::FactPlace* place = PlaceOf(encoding, row.scaling, row.key);
  if (place != nullptr && IsSame(place->found(), row.unless)) return false;
  switch (row.when) {
    case When::kAlways:
      return place != nullptr;
    case When::kLatent:
      return place != nullptr && latent;
    case When::kDeepseekV4:
      return place != nullptr && deepseek_v4;
    case When::kTelechat3:
      return place != nullptr && telechat3;
    case When::kPlain:
      return place != nullptr && plain;
    case When::kPlainPair:
      return plain && yarn.has_mscale() && yarn.has_mscale_all_dim() &&
             !yarn.has_attention_factor();
    case When::kAlone:
      return place != nullptr && alone && !in_file("attention_factor");
    case When::kLatentAlone:
      return place != nullptr && latent && alone && !in_file("attention_factor");
    case When::kNamedNtk:
      return place != nullptr && encoding.rope_type() == "ntk";
    case When::kSeveralAxes:
      return encoding.has_mrope();
    case When::kUnset:
      return place == nullptr;
    case When::kGrown:
      return place != nullptr && HasGrown(rope.dynamic());
    case When::kRounded: {
      int exponent = 0;
      const bool power_of_two = std::frexp(rope.linear().factor(), &exponent) == 0.5;
      return place != nullptr && !power_of_two && !rope.linear().divide_positions();
    }
    case When::kOtherLength:
      return place != nullptr && IsOfOtherLength(rope.dynamic());
  }
  return false;
}

// trtllm_cos_sin is trtllm in another layout.
bool IsOf(absl::string_view stack, absl::string_view profile) {
  return profile == stack || absl::StartsWith(profile, absl::StrCat(stack, "_"));
}

// At the key, or where it would stand: in the map.
void SetKeyPlace(const v1::ResolvedEncoding& encoding, absl::string_view scaling,
                 absl::string_view key, v1::Finding* finding) {
  if (const v1::FactPlace* place = PlaceOf(encoding, scaling, key)) {
    PointAt(*place, finding);
    finding->set_found(place->found());
  } else if (const v1::FactPlace* map = FindPlace(encoding, "scaling")) {
    PointAt(*map, finding);
    finding->set_pointer(absl::StrCat(map->pointer(), "/", key));
  }
}

// Which of the rows this table has, and how to ask for the others.
std::string RowsOfTable(const v1::LongRopeScaling& longrope) {
  const int64_t original = longrope.original_max_position_embeddings();
  if (longrope.short_then_long()) {
    return absl::StrCat("This table has both, the ", original, " short ones first.");
  }
  const bool is_long = longrope.sequence_length() > original;
  return absl::StrCat("This table has the ", is_long ? "long" : "short", " ones; sequence_length ",
                      is_long ? original : original + 1, " gives the ", is_long ? "short" : "long",
                      " ones.");
}

void AddLongRopeFinding(absl::string_view profile, const v1::ResolvedEncoding& encoding,
                        const v1::LongRopeScaling& longrope,
                        google::protobuf::RepeatedPtrField<v1::Finding>* findings) {
  for (const LongRopeUse& use : kLongRopeUses) {
    if (!IsOf(use.profile, profile)) continue;
    v1::Finding* finding = findings->Add();
    finding->set_severity(v1::SEVERITY_NOTE);
    finding->set_rule("profile-longrope-rows");
    SetKeyPlace(encoding, "longrope", "original_max_position_embeddings", finding);
    finding->set_message(absl::StrCat(use.profile, " ", use.before,
                                      longrope.original_max_position_embeddings(), use.after, ". ",
                                      RowsOfTable(longrope)));
  }
}

}  // namespace

void AddProfileFindings(absl::string_view profile, const v1::ResolvedEncoding& encoding,
                        const v1::RopeSpec& rope,
                        google::protobuf::RepeatedPtrField<v1::Finding>* findings) {
  if (rope.has_longrope()) AddLongRopeFinding(profile, encoding, rope.longrope(), findings);
  for (const UnheededKey& row : kUnheededKeys) {
    if (!IsOf(row.profile, profile) || !Holds(row, encoding, rope)) continue;
    v1::Finding* finding = findings->Add();
    finding->set_severity(v1::SEVERITY_NOTE);
    finding->set_rule("profile-ignores-key");
    SetKeyPlace(encoding, row.scaling, row.key, finding);
    if (row.heed == Heed::kOtherwise) {
      finding->set_message(absl::StrCat(row.profile, " heeds ", row.key, " of rope_type ",
                                        row.scaling, " in its own way: it ", row.effect,
                                        ". This table is as transformers has it."));
      continue;
    }
    const bool heeded = !rope.has_dynamic() || HasGrown(rope.dynamic());
    finding->set_message(absl::StrCat(
        row.profile, " does not heed ", row.key, " of rope_type ", row.scaling, ": it ", row.effect,
        ". This table ", heeded ? "heeds it." : "is for a length at which nothing is scaled."));
  }
}

}  // namespace posenc
