#include "client/cli/json.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/util/json_util.h"

namespace posenc::cli {
namespace {

using google::protobuf::util::JsonPrintOptions;

std::string ToJson(const google::protobuf::Message& message, const JsonPrintOptions& options) {
  std::string json;
  // Fails for malformed Any, Timestamp and the like only: our messages have none.
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return "{}";
  return json;
}

}  // namespace

std::string PrettyJson(const google::protobuf::Message& message) {
  JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  return ToJson(message, options);
}

std::string CompactJson(const google::protobuf::Message& message) {
  JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  return ToJson(message, options);
}

absl::Status FromJson(const std::string& json, absl::string_view what,
                      google::protobuf::Message* message) {
  const auto status = google::protobuf::util::JsonStringToMessage(json, message);
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": ", absl::string_view(status.message().data(), status.message().size())));
}

std::string JsonString(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted += '"';
}

std::string ExactDouble(double value) {
  for (const int digits : {15, 16}) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

}  // namespace posenc::cli
