#include "client/cli/server_address.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/exit_code.h"

namespace posenc::cli {
namespace {

constexpr uint32_t kMaxPort = 65535;

bool IsHost(absl::string_view host) {
  if (!absl::StartsWith(host, "[")) {
    return !host.empty() && host.find_first_of("]/: ") == host.npos;
  }
  if (!absl::EndsWith(host, "]")) return false;
  host = host.substr(1, host.size() - 2);
  return host.find(':') != host.npos && host.find_first_of("[]/ ") == host.npos;
}

// SimpleAtoi alone takes a sign and spaces too.
bool IsPort(absl::string_view text) {
  uint32_t port = 0;
  return text.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(text, &port) && port >= 1 && port <= kMaxPort;
}

}  // namespace

absl::Status CheckServerAddress(absl::string_view address) {
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:") && !path.empty()) return absl::OkStatus();
  const size_t colon = address.rfind(':');
  if (colon != absl::string_view::npos && IsHost(address.substr(0, colon)) &&
      IsPort(address.substr(colon + 1))) {
    return absl::OkStatus();
  }
  return UsageError(absl::StrCat("--server: must be HOST:PORT with a port of 1 to ", kMaxPort,
                                 ", or unix:PATH, got ", address));
}

}  // namespace posenc::cli
