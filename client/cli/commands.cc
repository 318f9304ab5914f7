#include "client/cli/commands.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/check.h"
#include "client/cli/encoding_lines.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/output_file.h"
#include "client/cli/progress.h"
#include "client/cli/request.h"
#include "client/cli/server_address.h"
#include "client/cli/summary.h"
#include "client/cli/table_writer.h"
#include "posenc/embedded_connection.h"

namespace posenc::cli {
namespace {

constexpr size_t kCopyBytes = size_t{1} << 20;  // on the way from the stream to the file

absl::Status Print(int fd, const std::string& text) {
  return WriteFully(fd, std::as_bytes(std::span<const char>(text)), "stdout");
}

absl::Status PrintJson(const google::protobuf::Message& message) {
  return Print(STDOUT_FILENO, PrettyJson(message));
}

void PrintFindings(const google::protobuf::RepeatedPtrField<v1::Finding>& findings) {
  for (const v1::Finding& finding : findings) {
    std::fprintf(stderr, "%s\n", FindingLine(finding).c_str());
  }
}

// Copies the table through a buffer, however large it is.
absl::Status CopyTable(TableReader* reader, FirstRows* rows, TableWriter* writer) {
  Progress progress(reader->header().total_bytes());
  std::vector<std::byte> buffer(kCopyBytes);
  while (true) {
    const absl::StatusOr<size_t> count = reader->Read(buffer);
    if (!count.ok()) return count.status();
    if (*count == 0) return absl::OkStatus();
    const auto bytes = std::span<const std::byte>(buffer).first(*count);
    rows->Append(bytes);
    if (absl::Status status = writer->Append(bytes); !status.ok()) return status;
    progress.Update(reader->offset());
  }
}

// How the table came, for who asked for shared memory.
std::string TransportText(const Arguments& arguments, const TableReader& reader) {
  if (!arguments.share_memory) return "";
  const std::string transport =
      reader.transport() == Transport::kSharedMemory
          ? "shared memory"
          : absl::StrCat("stream (", reader.why_streamed().message(), ")");
  return absl::StrCat("  transport         ", transport, "\n");
}

absl::Status RunTable(const Arguments& arguments, const Client& client) {
  const absl::Time start = absl::Now();
  const absl::StatusOr<v1::GetTableRequest> request = TableRequest(arguments);
  if (!request.ok()) return request.status();
  absl::StatusOr<std::unique_ptr<TableWriter>> writer = OpenTableWriter(arguments.output);
  if (!writer.ok()) return writer.status();
  absl::StatusOr<TableReader> reader = client.GetTable(*request);
  if (!reader.ok()) return reader.status();
  const v1::TableHeader& header = reader->header();
  FirstRows rows(header, arguments.show_rows);

  if (absl::Status status = (*writer)->Begin(header); !status.ok()) return status;
  if (absl::Status status = CopyTable(&*reader, &rows, writer->get()); !status.ok()) return status;
  const std::string content_hash = reader->content_hash();
  if (absl::Status status = (*writer)->End(content_hash); !status.ok()) return status;

  PrintFindings(header.findings());
  return Print(arguments.output == "-" ? STDERR_FILENO : STDOUT_FILENO,
               TableSummary(arguments.output, header, content_hash, absl::Now() - start) +
                   TransportText(arguments, *reader) + rows.Text());
}

absl::Status RunDescribe(const Arguments& arguments, const Client& client) {
  const absl::StatusOr<v1::DescribeTableRequest> request = DescribeRequest(arguments);
  if (!request.ok()) return request.status();
  const absl::StatusOr<v1::DescribeTableResponse> response = client.DescribeTable(*request);
  if (!response.ok()) return response.status();
  return PrintJson(*response);
}

// An encoding without a table to multiply has no attention_factor, and says 0. A line of the JSON
// is no part of a text, where line ends are escaped.
std::string WithoutNoFactor(const std::string& json) {
  std::string kept;
  for (const absl::string_view line : absl::StrSplit(json, '\n')) {
    if (absl::StripAsciiWhitespace(line) == "\"attention_factor\": 0,") continue;
    absl::StrAppend(&kept, kept.empty() ? "" : "\n", line);
  }
  return kept;
}

absl::Status RunResolve(const Arguments& arguments, const Client& client) {
  const absl::StatusOr<v1::ResolveModelConfigRequest> request = ResolveRequest(arguments);
  if (!request.ok()) return request.status();
  const absl::StatusOr<v1::ResolveModelConfigResponse> response =
      client.ResolveModelConfig(*request);
  if (!response.ok()) return response.status();
  if (arguments.in_short) return Print(STDOUT_FILENO, EncodingLines(*response));
  return Print(STDOUT_FILENO, WithoutNoFactor(PrettyJson(*response)));
}

absl::Status RunInfo(const Client& client) {
  const absl::StatusOr<v1::GetServerInfoResponse> response = client.GetServerInfo();
  if (!response.ok()) return response.status();
  return PrintJson(*response);
}

absl::Status RunHealth(const Arguments& arguments, const Client& client) {
  if (arguments.server.empty()) return UsageError("--server is required");
  if (absl::Status status = client.CheckHealth(); !status.ok()) return status;
  return Print(STDOUT_FILENO, "serving\n");
}

}  // namespace

absl::StatusOr<Client> MakeClient(const Arguments& arguments) {
  if (!arguments.server.empty()) {
    absl::Status address = CheckServerAddress(arguments.server);
    if (!address.ok()) return address;
    ClientOptions options;
    options.share_memory = arguments.share_memory;
    return Client(MakeConnection(arguments.server, options), options);
  }
  // One table is read once, front to back: pages kept would never be asked for.
  return Client(MakeEmbeddedConnection(EmbeddedOptions{.page_cache_bytes = 0}));
}

absl::Status Run(const Arguments& arguments, const Client& client) {
  switch (arguments.command) {
    case Command::kTable:
      return RunTable(arguments, client);
    case Command::kDescribe:
      return RunDescribe(arguments, client);
    case Command::kResolve:
      return RunResolve(arguments, client);
    case Command::kCheck:
      return RunCheck(arguments, client);
    case Command::kInfo:
      return RunInfo(client);
    case Command::kHealth:
      return RunHealth(arguments, client);
  }
  return absl::InternalError("unknown command");
}

}  // namespace posenc::cli
