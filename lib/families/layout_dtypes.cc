#include "lib/families/layout_dtypes.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "lib/base/status.h"
#include "lib/families/selection.h"

namespace posenc {
namespace {

std::string Name(v1::DType dtype) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::DType_Name(dtype), "DTYPE_"));
}

std::string Name(v1::Layout layout) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Layout_Name(layout), "LAYOUT_"));
}

}  // namespace

std::vector<v1::Layout> LayoutsOf(std::span<const LayoutDTypes> all) {
  std::vector<v1::Layout> layouts;
  for (const LayoutDTypes& one : all) layouts.push_back(one.layout);
  return layouts;
}

std::vector<v1::DType> DTypesOf(std::span<const LayoutDTypes> all) {
  std::vector<v1::DType> dtypes;
  for (const LayoutDTypes& one : all) {
    for (const v1::DType dtype : one.dtypes) {
      if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end()) dtypes.push_back(dtype);
    }
  }
  return dtypes;
}

absl::Status ResolveFormat(const Family& family, std::span<const LayoutDTypes> all,
                           v1::TensorFormat* format) {
  const v1::Layout wanted =
      format->layout() == v1::LAYOUT_UNSPECIFIED ? all.front().layout : format->layout();
  const auto layout = std::find_if(
      all.begin(), all.end(), [wanted](const LayoutDTypes& one) { return one.layout == wanted; });
  if (layout != all.end() && format->dtype() == v1::DTYPE_UNSPECIFIED) {
    format->set_dtype(layout->dtypes.front());
  }
  RETURN_IF_ERROR(ResolveFormat(family, format));
  const std::vector<v1::DType>& dtypes = layout->dtypes;
  if (std::find(dtypes.begin(), dtypes.end(), format->dtype()) == dtypes.end()) {
    return FieldError("format.dtype",
                      absl::StrCat(family.name(), " as ", Name(format->layout()), " has ",
                                   absl::StrJoin(dtypes, ", ",
                                                 [](std::string* out, v1::DType dtype) {
                                                   out->append(Name(dtype));
                                                 }),
                                   ", got ", Name(format->dtype())));
  }
  return absl::OkStatus();
}

}  // namespace posenc
