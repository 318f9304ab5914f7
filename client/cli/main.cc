// posenc: tables, descriptions and resolved configs from the command line.
//
//   arguments --> request --> client (a server's, or the embedded library's) --> file or JSON

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

#include "absl/synchronization/mutex.h"
#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/flag_names.h"
#include "client/cli/output_file.h"

namespace posenc::cli {
namespace {

void PrintError(const Arguments& arguments, ExitCode code, const absl::Status& status) {
  std::string text = "posenc: ";
  if (code == kUnreachable && !arguments.server.empty()) text += arguments.server + ": ";
  if (code == kInternal) text += absl::StatusCodeToString(status.code()) + ": ";
  text += std::string(status.message());
  if (code == kRefused) text += FlagsOf(status.message());
  text += "\n";
  std::fputs(text.c_str(), stderr);
}

int Main(int argc, char** argv) {
  const std::variant<Arguments, ExitCode> parsed = ParseArguments(argc, argv);
  if (const ExitCode* code = std::get_if<ExitCode>(&parsed)) return *code;
  const Arguments& arguments = std::get<Arguments>(parsed);
  const absl::StatusOr<Client> client = MakeClient(arguments);
  const absl::Status status = client.ok() ? Run(arguments, *client) : client.status();
  const ExitCode code = ExitCodeOf(status);
  if (code != kDone) PrintError(arguments, code, status);
  return code;
}

}  // namespace
}  // namespace posenc::cli

int main(int argc, char** argv) {
  // Debian's Abseil aborts the process where it suspects a lock-order cycle in gRPC.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);  // errors are reported here, once
  std::signal(SIGPIPE, SIG_IGN);                      // a closed stdout is a file error,
  std::signal(SIGXFSZ, SIG_IGN);                      // and so is a file that may not grow
  posenc::cli::RemoveOutputOnSignals();
  return posenc::cli::Main(argc, argv);
}
