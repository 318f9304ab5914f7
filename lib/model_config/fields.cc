#include "lib/model_config/fields.h"

#include <array>
#include <charconv>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"

namespace posenc {
namespace {

absl::Status WrongType(const JsonValue& value, absl::string_view wanted) {
  return FieldError(value.field(), absl::StrCat("must be ", wanted, ", got ", value.Describe()));
}

absl::StatusOr<std::optional<int64_t>> ReadIntFrom(const JsonValue& value, int64_t smallest) {
  if (!value.has_value()) return std::nullopt;
  if (!value.is_number()) return WrongType(value, "a whole number");
  const std::optional<int64_t> integer = value.integer();
  if (!integer.has_value() || *integer < smallest || *integer > kMaxConfigInt) {
    return WrongType(value, absl::StrCat("a whole number from ", smallest, " to ", kMaxConfigInt));
  }
  return integer;
}

}  // namespace

absl::StatusOr<std::optional<double>> ReadNumber(const JsonValue& value) {
  if (!value.has_value()) return std::nullopt;
  if (!value.is_number()) return WrongType(value, "a number");
  if (!std::isfinite(value.number())) return WrongType(value, "a finite number");
  return value.number();
}

absl::StatusOr<std::optional<double>> ReadPositiveNumber(const JsonValue& value) {
  ASSIGN_OR_RETURN(const std::optional<double> number, ReadNumber(value));
  if (number.has_value() && *number <= 0) return WrongType(value, "above 0");
  return number;
}

absl::StatusOr<std::optional<int64_t>> ReadInt(const JsonValue& value) {
  return ReadIntFrom(value, 0);
}

absl::StatusOr<std::optional<int64_t>> ReadPositiveInt(const JsonValue& value) {
  return ReadIntFrom(value, 1);
}

absl::StatusOr<std::optional<bool>> ReadBool(const JsonValue& value) {
  if (!value.has_value()) return std::nullopt;
  if (!value.is_bool()) return WrongType(value, "true or false");
  return value.bool_value();
}

absl::StatusOr<std::optional<std::string>> ReadString(const JsonValue& value) {
  if (!value.has_value()) return std::nullopt;
  if (!value.is_string()) return WrongType(value, "a string");
  return std::string(value.string());
}

absl::StatusOr<std::vector<double>> ReadNumbers(const JsonValue& value) {
  if (!value.is_array()) return WrongType(value, "a list of numbers");
  std::vector<double> numbers;
  numbers.reserve(value.size());
  for (const JsonValue& element : value.children()) {
    ASSIGN_OR_RETURN(const std::optional<double> number, ReadNumber(element));
    if (!number.has_value()) return WrongType(element, "a number");
    numbers.push_back(*number);
  }
  return numbers;
}

absl::StatusOr<std::vector<int64_t>> ReadInts(const JsonValue& value) {
  if (!value.is_array()) return WrongType(value, "a list of whole numbers");
  std::vector<int64_t> numbers;
  numbers.reserve(value.size());
  for (const JsonValue& element : value.children()) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> number, ReadInt(element));
    if (!number.has_value()) return WrongType(element, "a whole number");
    numbers.push_back(*number);
  }
  return numbers;
}

absl::StatusOr<std::vector<int64_t>> ReadSides(const JsonValue& value) {
  if (!value.has_value()) return std::vector<int64_t>();
  if (!value.is_array()) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> side, ReadPositiveInt(value));
    return std::vector<int64_t>{*side, *side};
  }
  if (value.size() != 2) return WrongType(value, "a number or a list of two");
  std::vector<int64_t> sides;
  for (const JsonValue& element : value.children()) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> side, ReadPositiveInt(element));
    if (!side.has_value()) return WrongType(element, "a whole number");
    sides.push_back(*side);
  }
  return sides;
}

bool IsGiven(const JsonValue& value) { return value.line() > 0 || value.in_overrides(); }

std::string NumberText(double number) {
  if (number == std::floor(number) && std::fabs(number) < 1e15) {
    return absl::StrCat(static_cast<int64_t>(number));
  }
  std::array<char, 32> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return std::string(digits.data(), result.ptr);
}

namespace {

JsonValue AtPath(JsonValue value, absl::string_view path) {
  for (absl::string_view key : absl::StrSplit(path, '/')) value = value[key];
  return value;
}

}  // namespace

bool HasName(absl::string_view names, absl::string_view name) {
  return absl::c_linear_search(absl::StrSplit(names, ' ', absl::SkipEmpty()), name);
}

JsonValue FirstOf(const JsonValue& object, absl::string_view names) {
  for (absl::string_view name : absl::StrSplit(names, ' ', absl::SkipEmpty())) {
    const JsonValue value = AtPath(object, name);
    if (value.has_value()) return value;
  }
  return JsonValue();
}

absl::StatusOr<JsonValue> OneOf(const JsonValue& object, absl::string_view names) {
  JsonValue first;
  for (absl::string_view name : absl::StrSplit(names, ' ', absl::SkipEmpty())) {
    const JsonValue value = AtPath(object, name);
    if (!value.has_value()) continue;
    if (!first.present()) {
      first = value;
    } else if (AreOtherNumbers(first, value)) {
      return Contradiction(value, first);
    }
  }
  return first;
}

bool AreOtherNumbers(const JsonValue& a, const JsonValue& b) {
  if (!a.is_number() || !b.is_number()) return false;
  return a.number() != b.number() && !(std::isnan(a.number()) && std::isnan(b.number()));
}

absl::Status Contradiction(const JsonValue& value, const JsonValue& other) {
  return FieldError(value.field(), absl::StrCat("contradicts ", other.field(),
                                                ", another name of the same: ", value.Text(),
                                                " against ", other.Text()));
}

}  // namespace posenc
