#include "lib/base/canonical_key.h"

#include <bit>
#include <cstdint>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace posenc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

static_assert(std::endian::native == std::endian::little, "tables and keys are little-endian");

template <typename T>
void AppendFixed(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendBytes(const std::string& value, std::string* out) {
  AppendFixed<uint64_t>(value.size(), out);
  out->append(value);
}

void AppendMessage(const Message& message, std::string* out);

// The value of `field`, or its element `index` when it is repeated.
void AppendValue(const Message& message, const FieldDescriptor* field, int index,
                 std::string* out) {
  const Reflection& get = *message.GetReflection();
  const bool repeated = field->is_repeated();
  std::string scratch;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return AppendFixed<int64_t>(
          repeated ? get.GetRepeatedInt32(message, field, index) : get.GetInt32(message, field),
          out);
    case FieldDescriptor::CPPTYPE_INT64:
      return AppendFixed<int64_t>(
          repeated ? get.GetRepeatedInt64(message, field, index) : get.GetInt64(message, field),
          out);
    case FieldDescriptor::CPPTYPE_UINT32:
      return AppendFixed<uint64_t>(
          repeated ? get.GetRepeatedUInt32(message, field, index) : get.GetUInt32(message, field),
          out);
    case FieldDescriptor::CPPTYPE_UINT64:
      return AppendFixed<uint64_t>(
          repeated ? get.GetRepeatedUInt64(message, field, index) : get.GetUInt64(message, field),
          out);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return AppendFixed<double>(
          repeated ? get.GetRepeatedDouble(message, field, index) : get.GetDouble(message, field),
          out);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return AppendFixed<double>(
          static_cast<double>(repeated ? get.GetRepeatedFloat(message, field, index)
                                       : get.GetFloat(message, field)),
          out);
    case FieldDescriptor::CPPTYPE_BOOL:
      return AppendFixed<uint64_t>(
          repeated ? get.GetRepeatedBool(message, field, index) : get.GetBool(message, field), out);
    case FieldDescriptor::CPPTYPE_ENUM:
      return AppendFixed<int64_t>(repeated ? get.GetRepeatedEnumValue(message, field, index)
                                           : get.GetEnumValue(message, field),
                                  out);
    case FieldDescriptor::CPPTYPE_STRING:
      return AppendBytes(repeated ? get.GetRepeatedStringReference(message, field, index, &scratch)
                                  : get.GetStringReference(message, field, &scratch),
                         out);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return AppendMessage(
          repeated ? get.GetRepeatedMessage(message, field, index) : get.GetMessage(message, field),
          out);
  }
}

void AppendMessage(const Message& message, std::string* out) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);  // set ones, ascending
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
    AppendFixed<uint32_t>(static_cast<uint32_t>(field->number()), out);
    AppendFixed<uint64_t>(static_cast<uint64_t>(count), out);
    for (int i = 0; i < count; ++i) AppendValue(message, field, i, out);
  }
  AppendFixed<uint32_t>(0, out);
}

}  // namespace

std::string CanonicalKey(const Message& message) {
  std::string key;
  AppendMessage(message, &key);
  return key;
}

}  // namespace posenc
