#include "lib/engine/float_tables.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "lib/base/hash.h"

namespace posenc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Depth is bounded: the message was parsed, or is one of ours.
void Collect(Message* message, const std::string& path, std::vector<FloatTableField>* found) {
  if (message->GetDescriptor() == v1::FloatTable::descriptor()) {
    found->push_back({path, static_cast<v1::FloatTable*>(message)});
    return;
  }
  std::vector<const FieldDescriptor*> fields;
  message->GetReflection()->ListFields(*message, &fields);  // set ones, ascending
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) continue;
    Collect(message->GetReflection()->MutableMessage(message, field),
            path.empty() ? field->name() : absl::StrCat(path, ".", field->name()), found);
  }
}

}  // namespace

std::vector<FloatTableField> FindFloatTables(v1::EncodingSpec* spec) {
  std::vector<FloatTableField> found;
  Collect(spec, "", &found);
  return found;
}

void ShortenFloatTables(v1::EncodingSpec* spec) {
  for (const FloatTableField& field : FindFloatTables(spec)) {
    if (field.table->f32().size() <= kMaxEchoedTableBytes) continue;
    field.table->set_content_hash(Hash128(field.table->f32()));
    field.table->clear_f32();
  }
}

}  // namespace posenc
