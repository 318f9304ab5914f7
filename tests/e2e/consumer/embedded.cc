// The library in this process: no server, no gRPC.

#include <cstdio>

#include "posenc/client.h"
#include "posenc/embedded_connection.h"

int main() {
  const posenc::Client client(posenc::MakeEmbeddedConnection());
  posenc::v1::DescribeTableRequest request;
  request.mutable_spec()->mutable_alibi()->set_num_heads(8);
  const auto described = client.DescribeTable(request);
  if (!described.ok()) return 1;
  std::printf("%g\n", described->slopes(0));
}
