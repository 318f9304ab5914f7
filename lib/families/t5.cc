#include "lib/families/families.h"

namespace posenc {
namespace {

class T5FamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "t5"; }
  absl::string_view numerics_version() const override { return "t5-0"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_TABLE}; }
  std::vector<v1::DType> dtypes() const override { return {v1::DTYPE_F32}; }
  absl::Status Canonicalize(v1::EncodingSpec*) const override {
    return absl::UnimplementedError("t5");
  }
  absl::StatusOr<TableShape> Resolve(const CanonicalSpec&, const v1::Selection&,
                                     const v1::TensorFormat&) const override {
    return absl::UnimplementedError("t5");
  }
  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec&) const override { return nullptr; }
};

}  // namespace

const Family& T5Family() {
  static const T5FamilyImpl family;
  return family;
}

}  // namespace posenc
