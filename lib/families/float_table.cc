#include "lib/families/float_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/hash.h"
#include "lib/base/status.h"

namespace posenc {
namespace {

static_assert(std::endian::native == std::endian::little, "f32 is little-endian");

template <typename Shape>
std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[",
                      absl::StrJoin(shape, ", ",
                                    [](std::string* out, int64_t length) {
                                      absl::StrAppend(
                                          out, length == kAnyLength ? "any" : absl::StrCat(length));
                                    }),
                      "]");
}

bool ShapeMatches(std::initializer_list<int64_t> expected, const v1::FloatTable& table) {
  return std::equal(
      expected.begin(), expected.end(), table.shape().begin(), table.shape().end(),
      [](int64_t want, int64_t got) { return want == kAnyLength ? got >= 1 : got == want; });
}

void MoveValuesToF32(v1::FloatTable* table) {
  const auto& values = table->values();
  table->mutable_f32()->assign(reinterpret_cast<const char*>(values.data()),
                               static_cast<size_t>(values.size()) * sizeof(float));
  table->clear_values();
}

// What only says again what the numbers are is not canonical.
absl::Status CheckContentHash(absl::string_view field, v1::FloatTable* table) {
  if (table->content_hash().empty()) return absl::OkStatus();
  const std::string hash = Hash128(table->f32());
  if (hash != table->content_hash()) {
    return FieldError(absl::StrCat(field, ".content_hash"),
                      absl::StrCat("is that of other numbers: these have ", hash, ", got ",
                                   absl::CHexEscape(table->content_hash())));
  }
  table->clear_content_hash();
  return absl::OkStatus();
}

}  // namespace

absl::Status CanonicalizeFloatTable(absl::string_view field,
                                    std::initializer_list<int64_t> expected,
                                    v1::FloatTable* table) {
  if (!table->f32().empty() && table->values_size() > 0) {
    return FieldError(field, "takes f32 or values, not both");
  }
  if (!ShapeMatches(expected, *table)) {
    return FieldError(
        absl::StrCat(field, ".shape"),
        absl::StrCat("must be ", ShapeText(expected), ", got ", ShapeText(table->shape())));
  }
  if (table->values_size() > 0) MoveValuesToF32(table);
  if (table->f32().empty() && !table->content_hash().empty()) {
    return FieldError(field, "names its numbers by content_hash alone: f32 is needed");
  }
  int64_t bytes = sizeof(float);
  for (const int64_t length : table->shape()) {
    if (__builtin_mul_overflow(bytes, length, &bytes)) {
      return FieldError(absl::StrCat(field, ".shape"),
                        absl::StrCat("is too large: ", ShapeText(table->shape())));
    }
  }
  if (static_cast<uint64_t>(bytes) != table->f32().size()) {
    return FieldError(field, absl::StrCat("shape ", ShapeText(table->shape()), " needs ", bytes,
                                          " bytes of f32, got ", table->f32().size()));
  }
  return CheckContentHash(field, table);
}

std::vector<float> FloatsOf(const v1::FloatTable& table) {
  std::vector<float> floats(table.f32().size() / sizeof(float));
  if (floats.empty()) return floats;  // memcpy may not be given the null of an empty vector
  std::memcpy(floats.data(), table.f32().data(), floats.size() * sizeof(float));
  return floats;
}

}  // namespace posenc
