// Messages as JSON, with the field names of the proto files.
#ifndef POSENC_CLIENT_CLI_JSON_H_
#define POSENC_CLIENT_CLI_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace posenc::cli {

// For people and scripts: indented, every field that has a value or a default.
// 64-bit integers are strings, as proto JSON writes them; doubles have as many
// digits as it takes to read them back bit for bit.
std::string PrettyJson(const google::protobuf::Message& message);

// On one line, set fields only.
std::string CompactJson(const google::protobuf::Message& message);

// INVALID_ARGUMENT "<what>: ..." for text that is no JSON of `message`.
absl::Status FromJson(const std::string& json, absl::string_view what,
                      google::protobuf::Message* message);

// `text` in quotes, with what JSON forbids in a string escaped.
std::string JsonString(absl::string_view text);

// The shortest of 15, 16 or 17 digits that reads back to `value`.
std::string ExactDouble(double value);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_JSON_H_
