// The server's log: one line an event, as JSON or as text, on standard error.
//
//   {"time":"2026-01-31T12:00:00.000000Z","level":"info","message":"served","method":"GetTable",...}
//   2026-01-31T12:00:00.000000Z info served method=GetTable ...
//
// Whatever a caller sent is escaped: a line is always one line.
#ifndef POSENC_SERVER_LOG_H_
#define POSENC_SERVER_LOG_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"

namespace posenc::server {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  absl::string_view key;
  std::variant<std::string, int64_t> value;

  LogField(absl::string_view name, absl::string_view text) : key(name), value(std::string(text)) {}
  LogField(absl::string_view name, int64_t number) : key(name), value(number) {}
};

// Until this is called nothing is logged. Takes over the lines of gRPC and protobuf.
// Lines are written by a thread of their own, and the oldest are dropped when
// standard error takes no more: a log that nobody reads must not stop a server.
void StartLogging(LogFormat format, LogLevel level);

// Writes what is left.
void StopLogging();

// Thread-safe.
void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields = {});

// What Log writes between the braces, or after the level.
std::string RenderLine(LogFormat format, absl::string_view message,
                       std::initializer_list<LogField> fields);

}  // namespace posenc::server

#endif  // POSENC_SERVER_LOG_H_
