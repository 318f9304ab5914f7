// Prints "name table_id content_hash" of every case, computed in this process.
// CTest compares the lines with digests.txt, on the CPU as it is and with
// glibc's FMA and AVX2 variants switched off.
#include <cstddef>
#include <cstdio>
#include <vector>

#include "posenc/client.h"
#include "posenc/embedded_connection.h"
#include "tests/conformance/cases.h"

int main() {
  const posenc::Client client(posenc::MakeEmbeddedConnection());
  for (const posenc::testing::Case& c : posenc::testing::Cases()) {
    absl::StatusOr<posenc::TableReader> table = client.GetTable(c.request);
    if (!table.ok()) {
      std::printf("%s %s\n", c.name.c_str(), table.status().ToString().c_str());
      return 1;
    }
    std::vector<std::byte> bytes(table->header().total_bytes());
    if (const absl::Status status = table->ReadAll(bytes); !status.ok()) {
      std::printf("%s %s\n", c.name.c_str(), status.ToString().c_str());
      return 1;
    }
    std::printf("%s %s %s\n", c.name.c_str(), table->header().table_id().c_str(),
                table->content_hash().c_str());
  }
  return 0;
}
