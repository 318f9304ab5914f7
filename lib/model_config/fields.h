// Values of a config, read as what they must be.
//
// Null reads as absent, as transformers does almost everywhere; any other type
// than the expected one is refused. Python coerces nothing either, it only fails
// later and less clearly.
#ifndef POSENC_LIB_MODEL_CONFIG_FIELDS_H_
#define POSENC_LIB_MODEL_CONFIG_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"

namespace posenc {

// Sizes, counts and lengths of a model lie in [1, kMaxConfigInt].
inline constexpr int64_t kMaxConfigInt = (int64_t{1} << 31) - 1;

// A finite number; a string that looks like one is refused.
absl::StatusOr<std::optional<double>> ReadNumber(const JsonValue& value);
// A finite number above 0.
absl::StatusOr<std::optional<double>> ReadPositiveNumber(const JsonValue& value);
// A whole number in [0, kMaxConfigInt].
absl::StatusOr<std::optional<int64_t>> ReadInt(const JsonValue& value);
// A whole number in [1, kMaxConfigInt].
absl::StatusOr<std::optional<int64_t>> ReadPositiveInt(const JsonValue& value);
absl::StatusOr<std::optional<bool>> ReadBool(const JsonValue& value);
absl::StatusOr<std::optional<std::string>> ReadString(const JsonValue& value);
// A list of finite numbers.
absl::StatusOr<std::vector<double>> ReadNumbers(const JsonValue& value);
// A list of whole numbers in [0, kMaxConfigInt].
absl::StatusOr<std::vector<int64_t>> ReadInts(const JsonValue& value);

// Rows and columns: one number above 0 for both, or a list of the two. Empty where
// there is no value.
absl::StatusOr<std::vector<int64_t>> ReadSides(const JsonValue& value);

// Whether a value is in the file or merged over it, not in a default map of its family.
bool IsGiven(const JsonValue& value);

// A number as a config would write it: whole ones without an exponent, others with
// the fewest digits that read back the same.
std::string NumberText(double number);

// Whether both are numbers, and not the same one; NaN, which a file can say, is itself.
bool AreOtherNumbers(const JsonValue& a, const JsonValue& b);

// `names` holds names of one thing, best first, separated by spaces; a name may
// be a path (attn_config/rope_theta).
//
// HasName: whether `name` is one of them.
bool HasName(absl::string_view names, absl::string_view name);
// FirstOf: the first that has a value; absent when none has.
JsonValue FirstOf(const JsonValue& object, absl::string_view names);
// The same, but refuses two that hold different numbers, with this Contradiction.
absl::StatusOr<JsonValue> OneOf(const JsonValue& object, absl::string_view names);
absl::Status Contradiction(const JsonValue& value, const JsonValue& other);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_FIELDS_H_
