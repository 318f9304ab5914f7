// Formats of families whose layouts differ in dtype: indexes are integers, biases
// are floats, masks are booleans.
#ifndef POSENC_LIB_FAMILIES_LAYOUT_DTYPES_H_
#define POSENC_LIB_FAMILIES_LAYOUT_DTYPES_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "lib/families/family.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

struct LayoutDTypes {
  v1::Layout layout;
  std::vector<v1::DType> dtypes;  // the default first
};

// What Family::layouts() and dtypes() answer.
std::vector<v1::Layout> LayoutsOf(std::span<const LayoutDTypes> all);
std::vector<v1::DType> DTypesOf(std::span<const LayoutDTypes> all);

// Fills in the default layout, then the default dtype of the layout, and checks
// that the family has the layout and the layout the dtype.
absl::Status ResolveFormat(const Family& family, std::span<const LayoutDTypes> all,
                           v1::TensorFormat* format);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_LAYOUT_DTYPES_H_
