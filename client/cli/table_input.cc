#include "client/cli/table_input.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/array_file.h"
#include "client/cli/exit_code.h"
#include "client/cli/input.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace posenc::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Far above any model's; this keeps a wrong file from filling memory.
constexpr uint64_t kMaxTableBytes = uint64_t{1} << 30;

struct TableArgument {
  std::string field;
  std::string file;
  std::string tensor;
};

TableArgument Split(const std::string& argument) {
  TableArgument parts;
  const size_t equals = argument.find('=');
  if (equals != std::string::npos) parts.field = argument.substr(0, equals);
  parts.file = equals == std::string::npos ? argument : argument.substr(equals + 1);
  constexpr absl::string_view kSuffix = ".safetensors:";
  const size_t suffix = parts.file.find(kSuffix.data());
  if (suffix != std::string::npos) {
    parts.tensor = parts.file.substr(suffix + kSuffix.size());
    parts.file.resize(suffix + kSuffix.size() - 1);
  }
  return parts;
}

// The table of the spec's family that `name` means.
absl::StatusOr<v1::FloatTable*> FindTable(const std::string& name, v1::EncodingSpec* spec) {
  std::vector<const FieldDescriptor*> set;
  spec->GetReflection()->ListFields(*spec, &set);
  if (set.empty()) return UsageError("--table: the spec has no encoding");
  Message* family = spec->GetReflection()->MutableMessage(spec, set.front());
  std::string names;
  const FieldDescriptor* found = nullptr;
  int tables = 0;
  for (int i = 0; i < family->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = family->GetDescriptor()->field(i);
    if (field->message_type() != v1::FloatTable::descriptor()) continue;
    ++tables;
    absl::StrAppend(&names, names.empty() ? "" : ", ", field->name());
    if (name.empty() || field->name() == name) found = field;
  }
  if (tables == 0) return UsageError(absl::StrCat("--table: ", set.front()->name(), " takes none"));
  if (found == nullptr || (name.empty() && tables > 1)) {
    return UsageError(absl::StrCat("--table: must be FIELD=FILE, FIELD one of ", names));
  }
  return static_cast<v1::FloatTable*>(family->GetReflection()->MutableMessage(family, found));
}

// Of a checkpoint with gigabytes, only its header and the table are read.
absl::Status ReadTable(const TableArgument& argument, v1::FloatTable* table) {
  const absl::StatusOr<FilePart> start = ReadPart(argument.file, 0, kMaxInputBytes);
  if (!start.ok()) return start.status();
  const absl::StatusOr<ArrayInfo> array =
      absl::EndsWith(argument.file, ".npy")
          ? ParseNpy(start->content, start->file_bytes)
          : ParseSafetensors(start->content, start->file_bytes, argument.tensor);
  if (!array.ok()) return FileError(argument.file, array.status().message());
  if (array->bytes > kMaxTableBytes) {
    return FileError(argument.file,
                     absl::StrCat("its table is larger than ", kMaxTableBytes, " bytes"));
  }
  absl::StatusOr<FilePart> data = ReadPart(argument.file, array->offset, array->bytes);
  if (!data.ok()) return data.status();
  if (data->content.size() != array->bytes) return FileError(argument.file, "became shorter");
  table->Clear();
  table->mutable_shape()->Add(array->shape.begin(), array->shape.end());
  table->set_f32(ToFloat32(array->dtype, std::move(data->content)));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadTableInto(const std::string& argument, v1::EncodingSpec* spec) {
  const TableArgument parts = Split(argument);
  if (!absl::EndsWith(parts.file, ".npy") && !absl::EndsWith(parts.file, ".safetensors")) {
    return UsageError(
        absl::StrCat("--table: must be [FIELD=]FILE.npy or "
                     "[FIELD=]FILE.safetensors[:TENSOR], got ",
                     argument));
  }
  const absl::StatusOr<v1::FloatTable*> table = FindTable(parts.field, spec);
  if (!table.ok()) return table.status();
  return ReadTable(parts, *table);
}

}  // namespace posenc::cli
