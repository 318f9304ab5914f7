#include "client/cli/summary.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "lib/numeric/dtype.h"

namespace posenc::cli {
namespace {

constexpr size_t kShownAtEachEnd = 4;          // values of a row
constexpr size_t kMaxKept = size_t{16} << 20;  // bytes; longer rows are not shown

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

size_t ElementBytes(const v1::TensorInfo& tensor) {
  uint64_t elements = 1;
  for (const int64_t dim : tensor.shape()) elements *= static_cast<uint64_t>(dim);
  return elements == 0 ? 0 : static_cast<size_t>(tensor.bytes() / elements);
}

std::string ValueText(v1::DType dtype, const std::byte* at) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return absl::StrFormat("%.9g", Load<double>(at));
    case v1::DTYPE_F16:
      return absl::StrFormat("%.6g", F16ToFloat(Load<uint16_t>(at)));
    case v1::DTYPE_BF16:
      return absl::StrFormat("%.6g", Bf16ToFloat(Load<uint16_t>(at)));
    case v1::DTYPE_I32:
      return absl::StrCat(Load<int32_t>(at));
    case v1::DTYPE_BOOL:
      return absl::StrCat(Load<uint8_t>(at));
    default:
      return absl::StrFormat("%.6g", Load<float>(at));
  }
}

// "cos[position 5]", or "slopes" alone for a list.
std::string RowLabel(const v1::TableHeader& header, int row) {
  const v1::TensorInfo& tensor = header.tensors(0);
  const v1::Selection& selection = header.selection();
  if (tensor.shape_size() < 2) return tensor.name();
  if (selection.has_position_range()) {
    return absl::StrCat(tensor.name(), "[position ", selection.position_range().begin() + row, "]");
  }
  if (row < selection.position_ids().ids_size()) {
    return absl::StrCat(tensor.name(), "[position ", selection.position_ids().ids(row), "]");
  }
  return absl::StrCat(tensor.name(), "[", row, "]");
}

}  // namespace

FirstRows::FirstRows(const v1::TableHeader& header, int rows) : header_(header) {
  if (rows == 0 || header.tensors_size() == 0) return;
  const v1::TensorInfo& tensor = header.tensors(0);
  const size_t element_bytes = ElementBytes(tensor);
  if (element_bytes == 0) return;
  const bool is_list = tensor.shape_size() < 2;  // is shown as one row
  const auto row_count = is_list ? 1 : static_cast<uint64_t>(tensor.shape(0));
  const uint64_t row_bytes = tensor.bytes() / row_count;
  if (row_bytes > kMaxKept / static_cast<size_t>(rows)) return;
  row_elements_ = static_cast<size_t>(row_bytes) / element_bytes;
  wanted_bytes_ = std::min<uint64_t>(row_count, static_cast<uint64_t>(rows)) * row_bytes;
}

void FirstRows::Append(std::span<const std::byte> bytes) {
  const size_t missing = wanted_bytes_ - bytes_.size();
  bytes = bytes.first(std::min(missing, bytes.size()));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::string FirstRows::Text() const {
  if (row_elements_ == 0) return "";
  const v1::TensorInfo& tensor = header_.tensors(0);
  const size_t element_bytes = ElementBytes(tensor);
  const size_t row_bytes = row_elements_ * element_bytes;
  std::string text;
  for (size_t row = 0; (row + 1) * row_bytes <= bytes_.size(); ++row) {
    std::vector<std::string> values;
    for (size_t i = 0; i < row_elements_; ++i) {
      if (i == kShownAtEachEnd && row_elements_ > 2 * kShownAtEachEnd) {
        values.push_back("...");
        i = row_elements_ - kShownAtEachEnd;
      }
      values.push_back(
          ValueText(tensor.dtype(), bytes_.data() + row * row_bytes + i * element_bytes));
    }
    absl::StrAppend(&text, "  ", RowLabel(header_, static_cast<int>(row)), ": ",
                    absl::StrJoin(values, " "), "\n");
  }
  return text;
}

std::string TableSummary(const std::string& output, const v1::TableHeader& header,
                         const std::string& content_hash, absl::Duration elapsed) {
  std::string text = absl::StrFormat("%s: %d bytes in %.3f s\n", output == "-" ? "stdout" : output,
                                     header.total_bytes(), absl::ToDoubleSeconds(elapsed));
  for (const v1::TensorInfo& tensor : header.tensors()) {
    absl::StrAppendFormat(&text, "  %-16s  %s [%s]\n", tensor.name(),
                          SafetensorsName(tensor.dtype()), absl::StrJoin(tensor.shape(), ", "));
  }
  absl::StrAppendFormat(&text, "  table_id          %s\n", header.table_id());
  absl::StrAppendFormat(&text, "  content_hash      %s\n", content_hash);
  absl::StrAppendFormat(&text, "  numerics_version  %s\n", header.numerics_version());
  if (!HasAttentionFactor(header.spec())) return text;
  absl::StrAppendFormat(&text, "  attention_factor  %s\n", ExactDouble(header.attention_factor()));
  return text;
}

}  // namespace posenc::cli
