// Flags and their environment twins: --max-queue is POSENC_MAX_QUEUE, and a flag
// beats the environment.
#ifndef POSENC_SERVER_OPTIONS_H_
#define POSENC_SERVER_OPTIONS_H_

#include <chrono>
#include <optional>
#include <string>

#include "server/log.h"
#include "server/server.h"

namespace posenc::server {

struct Options {
  ServerOptions server;
  std::chrono::nanoseconds drain_grace = std::chrono::seconds(30);
  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
};

// Either options, or what to print and how to exit: help and version with 0,
// wrong usage with 2.
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = 0;
  std::string text;
};

ParsedOptions ParseOptions(int argc, const char* const* argv);

}  // namespace posenc::server

#endif  // POSENC_SERVER_OPTIONS_H_
