#include "lib/families/families.h"

namespace posenc {
namespace {

class RopeFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "rope"; }
  absl::string_view numerics_version() const override { return "rope-0"; }
  bool rows_are_positions() const override { return true; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_TABLE}; }
  std::vector<v1::DType> dtypes() const override { return {v1::DTYPE_F32}; }
  absl::Status Canonicalize(v1::EncodingSpec*) const override {
    return absl::UnimplementedError("rope");
  }
  absl::StatusOr<TableShape> Resolve(const CanonicalSpec&, const v1::Selection&,
                                     const v1::TensorFormat&) const override {
    return absl::UnimplementedError("rope");
  }
  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec&) const override { return nullptr; }
};

}  // namespace

const Family& RopeFamily() {
  static const RopeFamilyImpl family;
  return family;
}

}  // namespace posenc
