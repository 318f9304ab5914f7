// Expected values: the lines of tests/golden/*.jsonl, and how to compare with one.
//
// A line names its case (`id`), says what was computed (`encoding`, `params`) and
// what came out (`dtype`, `shape`, and `values_hex`, `values` or `samples` with
// the `sha256` of all bytes), within `tolerance`: "exact", {"ulp": n} or
// {"abs": x}. Bits are big-endian hex; tables are little-endian.
//
// A runner walks a file, computes what it can, and hands back what it could not;
// ExpectNotYetCovered holds that remainder to tests/golden/not_yet_covered.txt,
// so that the list can only shrink.
#ifndef POSENC_TESTS_SUPPORT_GOLDEN_H_
#define POSENC_TESTS_SUPPORT_GOLDEN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "posenc/v1/table.pb.h"
#include "rapidjson/document.h"

namespace posenc::golden {

using Json = rapidjson::Value;

// The objects of tests/golden/<file>, in order. Fails the test when the file
// cannot be read or a line does not parse.
std::vector<rapidjson::Document> ReadLines(absl::string_view file);

std::string Id(const Json& line);

// A member that must be there; members that may be there.
const Json& Get(const Json& object, const char* name);
bool Has(const Json& object, const char* name);  // and is not null

// "3f800000" is 0x3f800000; a list of such strings.
uint64_t BitsOfHex(absl::string_view hex);
std::vector<uint64_t> BitsOfHexList(const Json& list);

// "f32", "f64", "f16", "bf16", "i32".
v1::DType DTypeOf(absl::string_view name);

// Element `index` of a little-endian array: its bits, and as a number.
uint64_t BitsAt(std::span<const std::byte> bytes, v1::DType dtype, size_t index);
double NumberOf(uint64_t bits, v1::DType dtype);

// Fails the test with a sentence for each of the first few values of `bytes`
// that are not what `line` expects; also when the dtype or the number of
// elements is another one.
void ExpectValues(const Json& line, v1::DType dtype, std::span<const std::byte> bytes);

// As above with the bits themselves, one element each.
void ExpectBits(const Json& line, v1::DType dtype, std::span<const uint64_t> bits);

// Why a line is not covered, by id. Empty: all are.
using NotCovered = std::map<std::string, std::string>;

// Computes what a line asks for and compares.
using CheckLine = void (*)(const Json& line, const Json& params);

// Checks every line of `file`; those whose encoding has no check are the file's lines
// of not_yet_covered.txt.
void CheckLines(absl::string_view file, const std::map<std::string, CheckLine>& checks);

// Expects that the lines "<file> <id> <reason>" of tests/golden/not_yet_covered.txt
// are exactly `skipped`.
void ExpectNotYetCovered(absl::string_view file, const NotCovered& skipped);

}  // namespace posenc::golden

#endif  // POSENC_TESTS_SUPPORT_GOLDEN_H_
