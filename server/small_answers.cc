#include "server/small_answers.h"

#include <vector>

namespace posenc::server {

std::string SmallAnswers::KeyOf(absl::string_view method, const grpc::ByteBuffer& request) {
  if (!request.Valid() || request.Length() > kMaxRequestBytes) return "";
  std::vector<grpc::Slice> slices;
  if (!request.Dump(&slices).ok()) return "";
  std::string key(method);
  key.push_back('\0');
  for (const grpc::Slice& slice : slices) {
    key.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return key;
}

std::shared_ptr<const SmallAnswer> SmallAnswers::Find(const std::string& key) {
  return key.empty() ? nullptr : answers_.Find(key);
}

void SmallAnswers::Keep(const std::string& key, const grpc::ByteBuffer& message,
                        uint64_t table_bytes) {
  if (key.empty() || message.Length() > kMaxAnswerBytes) return;
  answers_.FindOrMake(key, [&] {
    return std::make_shared<const SmallAnswer>(SmallAnswer{message, table_bytes});
  });
}

}  // namespace posenc::server
