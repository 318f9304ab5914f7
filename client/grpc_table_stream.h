// The stream of one GetTable attempt over gRPC.
#ifndef POSENC_CLIENT_GRPC_TABLE_STREAM_H_
#define POSENC_CLIENT_GRPC_TABLE_STREAM_H_

#include <memory>

#include "grpcpp/channel.h"
#include "grpcpp/impl/codegen/rpc_method.h"
#include "posenc/connection.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Opens streams whose messages are not parsed into protobuf's own memory: generated
// stubs would, and so copy every byte. Thread-safe.
class RawTableStub {
 public:
  explicit RawTableStub(std::shared_ptr<grpc::Channel> channel);

  // Never null; errors come from its first Read. A request whose tables make it larger
  // than one message goes by GetTableFromUpload: it is written here, before this returns.
  // The stream must not outlive this.
  std::unique_ptr<TableStream> Open(const v1::GetTableRequest& request,
                                    const CallContext& context) const;

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const grpc::internal::RpcMethod get_table_;
  const grpc::internal::RpcMethod get_table_from_upload_;
};

}  // namespace posenc

#endif  // POSENC_CLIENT_GRPC_TABLE_STREAM_H_
