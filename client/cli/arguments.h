// The command line as it was typed; values are interpreted in request.h.
#ifndef POSENC_CLIENT_CLI_ARGUMENTS_H_
#define POSENC_CLIENT_CLI_ARGUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/cli/exit_code.h"

namespace posenc::cli {

enum class Command { kTable, kDescribe, kResolve, kCheck, kInfo, kHealth };

// Flags of the design's section 6, by the same names.
struct Arguments {
  Command command = Command::kInfo;
  std::string server;  // empty: the library embedded in the tool

  // SOURCE
  std::optional<std::string> spec;
  std::vector<std::string> tables;    // [FIELD=]FILE, into the spec
  std::optional<std::string> config;  // also the MODEL of resolve
  std::string tower;
  std::string layer_type;
  std::optional<int64_t> sequence_length;
  std::string hf_overrides;
  std::string arithmetic;
  std::string compat;  // also of check

  // SELECTION
  std::optional<std::string> positions;
  std::optional<std::string> position_ids;
  std::optional<std::string> grid;       // HxW or TxHxW patches
  std::optional<std::string> selection;  // a file, or the JSON itself
  std::optional<int64_t> query_length;
  std::optional<int64_t> key_length;
  std::optional<int64_t> query_offset;

  // FORMAT
  std::string dtype;
  std::string layout;
  std::string profile;
  std::optional<int64_t> rows;  // format.max_model_len

  // resolve
  bool in_short = false;

  // check
  std::vector<std::string> models;
  std::optional<std::string> base;
  std::string fail_on = "error";
  std::string report_format = "text";

  // table
  std::string output;
  int show_rows = 0;
  bool share_memory = false;
};

// Reads argv and POSENC_SERVER (the flag beats it). When there is nothing to run,
// because help or the version was asked for or the line is wrong, that is printed
// and the exit code returned.
std::variant<Arguments, ExitCode> ParseArguments(int argc, char** argv);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_ARGUMENTS_H_
