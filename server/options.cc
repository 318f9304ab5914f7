#include "server/options.h"

#include <cstdint>
#include <limits>
#include <sstream>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace posenc::server {
namespace {

constexpr int kWrongUsage = 2;
constexpr char kDefaultListen[] = "127.0.0.1:50051";

// Measured: below 64 KiB a stream spends its time on frames; above 3 MiB a
// message would pass the 4 MiB that an unconfigured client takes.
constexpr uint64_t kMinChunkBytes = uint64_t{64} << 10;
constexpr uint64_t kMaxChunkBytes = uint64_t{3} << 20;
constexpr uint64_t kMaxBytes = uint64_t{std::numeric_limits<int64_t>::max()};
constexpr uint64_t kMaxCount = uint64_t{1} << 20;
constexpr uint64_t kMaxThreads = 1024;
constexpr double kMaxSeconds = 1e6;

// What the command line holds before it becomes Options.
struct Raw {
  std::vector<std::string> listen = {kDefaultListen};
  double stall_timeout = 30;
  double drain_grace = 30;
  std::string log_format = "text";
  std::string log_level = "info";
};

CLI::Option* Twin(CLI::Option* option) {
  return option->envname("POSENC_" + absl::AsciiStrToUpper(absl::StrReplaceAll(
                                         option->get_lnames().front(), {{"-", "_"}})));
}

void AddBytes(CLI::App* app, const std::string& flag, uint64_t* value, uint64_t min, uint64_t max,
              const std::string& help) {
  Twin(app->add_option(flag, *value, help))
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false).description(""))
      ->check(CLI::Range(min, max))
      ->type_name("BYTES")
      ->capture_default_str();
}

void AddCount(CLI::App* app, const std::string& flag, uint64_t* value, uint64_t max,
              const std::string& help) {
  Twin(app->add_option(flag, *value, help))
      ->check(CLI::Range(uint64_t{0}, max))
      ->type_name("N")
      ->capture_default_str();
}

// CLI::Range lets NaN through.
std::string CheckSeconds(const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && seconds >= 0 && seconds <= kMaxSeconds) return "";
  return absl::StrCat("must be a number of seconds in [0, ", kMaxSeconds, "], got ", text);
}

void AddSeconds(CLI::App* app, const std::string& flag, double* value, const std::string& help) {
  Twin(app->add_option(flag, *value, help))
      ->check(CheckSeconds)
      ->type_name("SECONDS")
      ->capture_default_str();
}

void AddChoice(CLI::App* app, const std::string& flag, std::string* value,
               const std::vector<std::string>& choices, const std::string& help) {
  Twin(app->add_option(flag, *value, help))
      ->check(CLI::IsMember(choices))
      ->type_name("")
      ->capture_default_str();
}

LogFormat LogFormatOf(absl::string_view name) {
  return name == "json" ? LogFormat::kJson : LogFormat::kText;
}

LogLevel LogLevelOf(absl::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  return name == "warning" ? LogLevel::kWarning : LogLevel::kError;
}

void AddLimits(CLI::App* app, ServerOptions* options) {
  AddBytes(app, "--max-table-bytes", &options->engine.max_table_bytes, 1, kMaxBytes,
           "Largest table to serve");
  AddBytes(app, "--max-request-bytes", &options->max_request_bytes, 1, uint64_t{1} << 30,
           "Largest request message to read");
  AddBytes(app, "--max-upload-bytes", &options->max_upload_bytes, 0, uint64_t{1} << 40,
           "Budget for tables that requests upload");
  AddCount(app, "--max-position-ids", &options->engine.max_position_ids, uint64_t{1} << 28,
           "Most explicit positions in a request");
  AddCount(app, "--max-queue", &options->max_queue, kMaxCount,
           "Requests that may wait for a thread");
  AddCount(app, "--max-concurrent-streams", &options->max_concurrent_streams, kMaxCount,
           "Tables to send at the same time");
  AddCount(app, "--max-connections", &options->max_connections, kMaxCount,
           "Connections to serve at the same time");
  AddCount(app, "--compute-threads", &options->compute_threads, kMaxThreads,
           "Threads that compute; 0: one a processor");
  AddCount(app, "--event-threads", &options->event_threads, kMaxThreads,
           "Threads that move calls and bytes; 0: one for two processors, at most 16");
  AddBytes(app, "--page-cache-bytes", &options->engine.page_cache_bytes, 0, kMaxBytes,
           "Budget for pages of tables");
  AddBytes(app, "--plan-cache-bytes", &options->engine.plan_cache_bytes, 0, kMaxBytes,
           "Budget for plans (frequencies, slopes ...)");
  AddBytes(app, "--answer-cache-bytes", &options->answer_cache_bytes, 0, kMaxBytes,
           "Budget for small answers, given again without computing");
  AddBytes(app, "--chunk-bytes", &options->engine.page_bytes, kMinChunkBytes, kMaxChunkBytes,
           "Size of a page and of a message of a stream");
}

void AddAll(CLI::App* app, Options* options, Raw* raw) {
  app->set_version_flag("--version", "posenc-server " POSENC_VERSION);
  Twin(app->add_option("--listen", raw->listen,
                       "HOST:PORT (0 takes a free port) or unix:PATH; may be repeated"))
      ->delimiter(',')
      ->type_name("ADDRESS")
      ->capture_default_str();
  AddLimits(app, &options->server);
  AddSeconds(app, "--stall-timeout", &raw->stall_timeout,
             "End a stream whose peer takes or sends nothing for so long; 0: never");
  AddSeconds(app, "--drain-grace", &raw->drain_grace,
             "How long running calls may go on after SIGTERM or SIGINT");
  Twin(app->add_flag("--share-memory", options->server.share_memory,
                     "Hand tables over as memory, at PATH.memfd of each unix:PATH, to processes "
                     "of this user"));
  AddBytes(app, "--share-memory-bytes", &options->server.share_memory_bytes, 1, kMaxBytes,
           "Budget for memory to hand over");
  Twin(app->add_option("--reflection", options->server.reflection, "Answer gRPC server reflection"))
      ->capture_default_str();
  AddChoice(app, "--log-format", &raw->log_format, {"text", "json"}, "Lines on standard error");
  AddChoice(app, "--log-level", &raw->log_level, {"debug", "info", "warning", "error"},
            "Least level to log");
}

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

ParsedOptions ParseOptions(int argc, const char* const* argv) {
  Options options;
  options.server.reflection = true;
  Raw raw;
  CLI::App app("Serves positional encodings over gRPC.", "posenc-server");
  app.footer(
      "BYTES may end in KiB, MiB, GiB ... A flag beats its POSENC_... environment variable.");
  AddAll(&app, &options, &raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11's own text names them from the last to the first.
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
      const std::vector<std::string> unexpected = app.remaining();
      return {std::nullopt, kWrongUsage,
              absl::StrCat("posenc-server: not expected: ", absl::StrJoin(unexpected, " "),
                           "\nRun with --help for more information.\n")};
    }
    std::ostringstream out;
    const bool asked = app.exit(error, out, out) == 0;
    return {std::nullopt, asked ? 0 : kWrongUsage, out.str()};
  }
  options.server.listen = raw.listen;
  options.server.stall_timeout = Seconds(raw.stall_timeout);
  options.drain_grace = Seconds(raw.drain_grace);
  options.log_format = LogFormatOf(raw.log_format);
  options.log_level = LogLevelOf(raw.log_level);
  return {options, 0, ""};
}

}  // namespace posenc::server
