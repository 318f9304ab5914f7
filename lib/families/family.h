// The whole contract between an encoding and everything around it.
//
//   EncodingSpec --Canonicalize--> CanonicalSpec --Resolve--> TableShape
//                                        |                        |
//                                     MakePlan --> Plan --Fill--> bytes
//
// A family is one file: canonicalize, then shapes, then plan, then values, read
// from top to bottom. Nothing outside lib/families knows which families exist.
#ifndef POSENC_LIB_FAMILIES_FAMILY_H_
#define POSENC_LIB_FAMILIES_FAMILY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Coordinates are bounded so that no product of them overflows and every angle
// stays where the argument reduction is proven.
inline constexpr int64_t kMaxPosition = int64_t{1} << 31;    // exclusive, in magnitude
inline constexpr int64_t kMaxGridLength = int64_t{1} << 31;  // of queries or keys

// A spec that was completed and checked: it exists only if it is valid, so code
// that holds one trusts it. Immutable.
class CanonicalSpec {
 public:
  const v1::EncodingSpec& proto() const { return proto_; }
  // CanonicalKey(proto()): equal exactly for equal specs.
  const std::string& key() const { return key_; }

 private:
  friend absl::StatusOr<CanonicalSpec> Canonicalize(v1::EncodingSpec spec);
  explicit CanonicalSpec(v1::EncodingSpec proto);

  v1::EncodingSpec proto_;
  std::string key_;
};

// One tensor of a table, and how it is cut and addressed.
//
// Its elements have fixed addresses on the coordinate axis of the encoding, so
// that two selections that overlap share them: the row of position p begins at
// address p * unit whatever the selection. The tensor is the addresses
// [origin, origin + product(shape)).
struct Tensor {
  std::string name;
  v1::DType dtype;
  std::vector<int64_t> shape;
  int64_t unit;        // elements filled together (a row); divides origin and the size
  int64_t origin = 0;  // address of the first element

  int64_t size() const;  // elements
};

// What a request gives, known before any work is done.
struct TableShape {
  v1::Selection selection;  // canonical
  v1::TensorFormat format;  // canonical
  std::vector<Tensor> tensors;
  // What besides spec, tensor, dtype and address decides a value: the explicit
  // ids or the grid of a selection; empty for a range of positions.
  std::string coordinates_key;
};

// The elements of a tensor at addresses [begin, begin + n), and their memory.
struct TensorPart {
  size_t tensor;
  int64_t begin;
  std::span<std::byte> out;  // n elements
};

// What is worth computing once for a spec. Immutable; all methods thread-safe.
class Plan {
 public:
  Plan() : number_(++plans_made_) {}
  virtual ~Plan() = default;

  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // No other plan of this process ever has it.
  uint64_t number() const { return number_; }

  // Memory that it holds, for the cache's budget.
  virtual size_t bytes() const = 0;

  // Writes the elements of shape.tensors[tensor] at addresses [begin, begin + n),
  // little-endian, where n is out.size() / (bytes of the dtype).
  // REQUIRES: begin and n are multiples of the tensor's unit, the addresses lie
  // in the tensor. O(n).
  virtual void Fill(const TableShape& shape, size_t tensor, int64_t begin,
                    std::span<std::byte> out) const = 0;

  // The same bytes for several parts at once, into memory that is in no cache and is not
  // read soon: large tensors of a caller's. It is written past the caches where that
  // is faster (whole lines of 64 bytes), and parts of two tensors that are made from
  // the same values (cos and sin of the same rows) in one pass.
  virtual void FillCold(const TableShape& shape, std::span<const TensorPart> parts) const {
    for (const TensorPart& part : parts) Fill(shape, part.tensor, part.begin, part.out);
  }

  // Sets the facts of DescribeTableResponse that are this family's, but not the header.
  virtual void Describe(v1::DescribeTableResponse* response) const = 0;

  // Multiplies cos and sin (it is inside them already); 1 where there is none.
  virtual double attention_factor() const { return 1.0; }

 private:
  static inline std::atomic<uint64_t> plans_made_{0};
  const uint64_t number_;
};

class Family {
 public:
  virtual ~Family() = default;

  // The field of EncodingSpec: also the first part of error paths.
  virtual absl::string_view name() const = 0;

  // Part of every table id. Raise it when any byte of any table changes.
  virtual absl::string_view numerics_version() const = 0;

  // Whether its tables have a row a position (a range or ids select them), not a
  // grid of queries and keys.
  virtual bool rows_are_positions() const = 0;

  virtual std::vector<v1::Layout> layouts() const = 0;  // the default first
  virtual std::vector<v1::DType> dtypes() const = 0;    // the default first

  // Fills in defaults and refuses what makes no sense, with a FieldError. The
  // only source of INVALID_ARGUMENT for specs. Idempotent.
  virtual absl::Status Canonicalize(v1::EncodingSpec* spec) const = 0;

  // The tensors of a table. Refuses (FieldError) a selection, dtype or layout
  // that the family does not have, and coordinates outside their range.
  virtual absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec,
                                             const v1::Selection& selection,
                                             const v1::TensorFormat& format) const = 0;

  // Cannot fail: everything was checked.
  virtual std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const = 0;
};

// The family of a spec whose oneof is set. REQUIRES: it is.
const Family& FamilyOf(const v1::EncodingSpec& spec);

// All of them, in field order.
std::span<const Family* const> AllFamilies();

// The entry: an unset oneof is refused here, the rest by the family.
absl::StatusOr<CanonicalSpec> Canonicalize(v1::EncodingSpec spec);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_FAMILY_H_
