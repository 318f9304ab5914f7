#include "server/text.h"

#include "absl/strings/escaping.h"
#include "rapidjson/encodings.h"
#include "rapidjson/memorystream.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"

namespace posenc::server {

bool IsUtf8(absl::string_view text) {
  rapidjson::MemoryStream in(text.data(), text.size());
  rapidjson::StringBuffer out;
  while (in.Tell() < text.size()) {
    if (!rapidjson::UTF8<>::Validate(in, out)) return false;
  }
  return true;
}

std::string JsonString(absl::string_view text) {
  const std::string valid = IsUtf8(text) ? std::string(text) : absl::CHexEscape(text);
  rapidjson::StringBuffer out;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::ASCII<>> writer(out);
  writer.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  return {out.GetString(), out.GetSize()};
}

}  // namespace posenc::server
