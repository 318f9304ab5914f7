#include "client/request_parts.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "xxhash.h"

namespace posenc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

static_assert(std::endian::native == std::endian::little, "an upload is little-endian");

// Calls visit(FloatTable*) for each that is set in `message`, in field order.
void ForEachTable(Message* message, const std::function<void(v1::FloatTable*)>& visit) {
  if (message->GetDescriptor() == v1::FloatTable::descriptor()) {
    return visit(static_cast<v1::FloatTable*>(message));
  }
  std::vector<const FieldDescriptor*> fields;
  message->GetReflection()->ListFields(*message, &fields);  // set ones, ascending
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) continue;
    ForEachTable(message->GetReflection()->MutableMessage(message, field), visit);
  }
}

// Empty, and the table left alone, when it has none, or has them twice, which is refused.
std::string TakeNumbers(v1::FloatTable* table) {
  if (!table->f32().empty() && table->values_size() > 0) return "";
  std::string numbers = std::move(*table->mutable_f32());
  if (numbers.empty()) {
    numbers.assign(reinterpret_cast<const char*>(table->values().data()),
                   static_cast<size_t>(table->values_size()) * sizeof(float));
  }
  table->clear_f32();
  table->clear_values();
  return numbers;
}

}  // namespace

RequestParts::RequestParts(const v1::GetTableRequest& request) : request_(request) {
  if (!request.has_spec()) return;
  ForEachTable(request_->mutable_spec(), [&](v1::FloatTable* table) {
    std::string numbers = TakeNumbers(table);
    if (!numbers.empty()) tables_.push_back(std::move(numbers));
  });
}

std::optional<v1::GetTableFromUploadRequest> RequestParts::Next() {
  v1::GetTableFromUploadRequest message;
  if (request_.has_value()) {
    *message.mutable_request() = *std::exchange(request_, std::nullopt);
    return message;
  }
  if (table_ == tables_.size()) return std::nullopt;
  const std::string& table = tables_[table_];
  message.set_offset(offset_);
  message.set_data(table.substr(begin_, kUploadMessageBytes));
  message.set_checksum(XXH3_64bits(message.data().data(), message.data().size()));
  offset_ += message.data().size();
  begin_ += message.data().size();
  if (begin_ == table.size()) {
    ++table_;
    begin_ = 0;
  }
  return message;
}

}  // namespace posenc
