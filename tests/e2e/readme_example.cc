// The C++ call of README.md, word for word; tests/e2e/install_test.sh builds it
// against an installed posenc and runs it.

#include <cstdio>
#include <vector>

#include "posenc/client.h"

int main(int, char** argv) {
  const posenc::Client client(posenc::MakeConnection(argv[1]));  // "127.0.0.1:50051"

  posenc::v1::GetTableRequest request;
  request.mutable_spec()->mutable_rope()->set_head_dim(128);
  request.mutable_spec()->mutable_rope()->set_rope_theta(500000);
  request.mutable_selection()->mutable_position_range()->set_end(4096);
  request.mutable_format()->set_layout(posenc::v1::LAYOUT_COS_AND_SIN_HALF);

  absl::StatusOr<posenc::TableReader> table = client.GetTable(request);
  if (!table.ok()) {
    std::fprintf(stderr, "%s\n", table.status().ToString().c_str());
    return 1;
  }
  // The header is here, so the memory can be made; then the bytes go straight into it.
  std::vector<float> cos(4096 * 64), sin(4096 * 64);
  absl::Status status = table->ReadTensor("cos_cache", std::as_writable_bytes(std::span(cos)));
  if (status.ok()) {
    status = table->ReadTensor("sin_cache", std::as_writable_bytes(std::span(sin)));
  }
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("table   %s\ncontent %s\n", table->header().table_id().c_str(),
              table->content_hash().c_str());
  std::printf("position 1, first pair: cos %.9g sin %.9g\n", static_cast<double>(cos[64]),
              static_cast<double>(sin[64]));
}
