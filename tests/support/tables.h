// Tables as tests want them: a spec in text form in, whole tensors out, without
// an engine, a cache or pages in between.
#ifndef POSENC_TESTS_SUPPORT_TABLES_H_
#define POSENC_TESTS_SUPPORT_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/families/family.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc::testing {

// "alibi { num_heads: 8 }". Fails the test when the text does not parse.
v1::EncodingSpec Spec(const std::string& text);
v1::Selection Select(const std::string& text);
v1::TensorFormat Format(const std::string& text);

v1::Selection SelectGrid(int64_t query_length, int64_t key_length, int64_t query_offset = 0);
v1::Selection SelectRange(int64_t begin, int64_t end);
v1::Selection SelectIds(const std::vector<int64_t>& ids);

struct FilledTensor {
  Tensor tensor;
  std::vector<std::byte> bytes;

  // The elements as the machine's type. REQUIRES: T has the size of the dtype.
  template <typename T>
  std::vector<T> As() const {
    const T* first = reinterpret_cast<const T*>(bytes.data());
    return std::vector<T>(first, first + bytes.size() / sizeof(T));
  }
};

struct FilledTable {
  TableShape shape;
  v1::DescribeTableResponse description;  // without the header
  std::vector<FilledTensor> tensors;
};

// Canonicalize, Resolve, MakePlan and one Fill a tensor.
absl::StatusOr<FilledTable> FillTable(const v1::EncodingSpec& spec, const v1::Selection& selection,
                                      const v1::TensorFormat& format);

// The only tensor of such a table. Fails the test when it is refused.
FilledTensor FillOne(const std::string& spec, const v1::Selection& selection,
                     const std::string& format = "");

// Fails the test unless every split of every tensor of the table into parts of
// `units` units each gives the same bytes as one fill.
void ExpectPartsEqualWhole(const v1::EncodingSpec& spec, const v1::Selection& selection,
                           const v1::TensorFormat& format, int64_t units);

// The message of the refusal by Canonicalize, or "" when the spec is accepted.
std::string SpecRefusal(const std::string& spec);
// The same for the whole way to a table.
std::string TableRefusal(const std::string& spec, const v1::Selection& selection,
                         const std::string& format = "");

// Canonicalize twice equals once.
void ExpectIdempotent(const std::string& spec);

}  // namespace posenc::testing

#endif  // POSENC_TESTS_SUPPORT_TABLES_H_
