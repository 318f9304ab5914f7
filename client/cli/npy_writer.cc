#include "client/cli/npy_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/names.h"

namespace posenc::cli {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY\x01\x00", 8);
constexpr size_t kAlignment = 64;  // of the data in the file, as the format asks

// Empty for what numpy does not have.
absl::string_view NumpyName(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_F32:
      return "<f4";
    case v1::DTYPE_F64:
      return "<f8";
    case v1::DTYPE_F16:
      return "<f2";
    case v1::DTYPE_I32:
      return "<i4";
    case v1::DTYPE_BOOL:
      return "|b1";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<std::string> NpyHeader(const v1::TableHeader& header) {
  if (header.tensors_size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("a .npy file holds one tensor, this table has ",
                                                   header.tensors_size(),
                                                   "; write a .safetensors file"));
  }
  const v1::TensorInfo& tensor = header.tensors(0);
  const absl::string_view dtype = NumpyName(tensor.dtype());
  if (dtype.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "numpy has no ", SafetensorsName(tensor.dtype()),
        ", which a .npy file would need; write a .safetensors file or ask for another --dtype"));
  }
  // A tuple of one needs its comma.
  std::string dictionary = absl::StrCat("{'descr': '", dtype, "', 'fortran_order': False, ",
                                        "'shape': (", absl::StrJoin(tensor.shape(), ", "),
                                        tensor.shape_size() == 1 ? ",), }" : "), }");
  const size_t unpadded = kMagic.size() + 2 + dictionary.size() + 1;
  dictionary.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dictionary += '\n';
  return absl::StrCat(kMagic,
                      std::string{static_cast<char>(dictionary.size() & 0xff),
                                  static_cast<char>(dictionary.size() >> 8)},
                      dictionary);
}

NpyWriter::NpyWriter(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}

absl::Status NpyWriter::Begin(const v1::TableHeader& header) {
  const absl::StatusOr<std::string> bytes = NpyHeader(header);
  if (!bytes.ok()) return bytes.status();
  return file_->Append(std::as_bytes(std::span<const char>(*bytes)));
}

absl::Status NpyWriter::Append(std::span<const std::byte> bytes) { return file_->Append(bytes); }

absl::Status NpyWriter::End(const std::string&) { return file_->Commit(); }

}  // namespace posenc::cli
