#include "server/log.h"

#include <atomic>
#include <memory>

#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"
#include "server/text.h"
#include "spdlog/async.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace posenc::server {
namespace {

constexpr size_t kQueuedLines = 8192;
constexpr char kName[] = "posenc";
constexpr char kJsonPattern[] = R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})";
constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%fZ %l %v";

std::atomic<LogFormat> log_format{LogFormat::kText};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// Much that gRPC calls an error is what a peer did wrong.
void LogFromGrpc(gpr_log_func_args* line) {
  Log(line->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kDebug,
      line->message, {{"source", "grpc"}});
}

void LogFromProtobuf(google::protobuf::LogLevel /*level*/, const char* file, int line,
                     const std::string& message) {
  Log(LogLevel::kDebug, message, {{"source", absl::StrCat(file, ":", line)}});
}

bool NeedsQuotes(absl::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7F) return true;
  }
  return text.empty();
}

std::string RenderValue(LogFormat format, const LogField& field) {
  if (const auto* number = std::get_if<int64_t>(&field.value)) return absl::StrCat(*number);
  const std::string& text = std::get<std::string>(field.value);
  return format == LogFormat::kJson || NeedsQuotes(text) ? JsonString(text) : text;
}

}  // namespace

std::string RenderLine(LogFormat format, absl::string_view message,
                       std::initializer_list<LogField> fields) {
  const bool json = format == LogFormat::kJson;
  std::string line = json ? absl::StrCat("\"message\":", JsonString(message)) : JsonString(message);
  for (const LogField& field : fields) {
    if (json) {
      absl::StrAppend(&line, ",", JsonString(field.key), ":", RenderValue(format, field));
    } else {
      absl::StrAppend(&line, " ", field.key, "=", RenderValue(format, field));
    }
  }
  return line;
}

void StartLogging(LogFormat format, LogLevel level) {
  log_format = format;
  spdlog::init_thread_pool(kQueuedLines, 1);
  const auto logger = spdlog::create_async_nb<spdlog::sinks::stderr_sink_mt>(kName);
  logger->set_pattern(format == LogFormat::kJson ? kJsonPattern : kTextPattern,
                      spdlog::pattern_time_type::utc);
  logger->set_level(SpdlogLevel(level));
  logger->flush_on(spdlog::level::debug);
  gpr_set_log_function(&LogFromGrpc);
  google::protobuf::SetLogHandler(&LogFromProtobuf);
}

void StopLogging() { spdlog::shutdown(); }

void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields) {
  const std::shared_ptr<spdlog::logger> logger = spdlog::get(kName);
  if (logger == nullptr || !logger->should_log(SpdlogLevel(level))) return;
  const std::string line = RenderLine(log_format, message, fields);
  logger->log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace posenc::server
