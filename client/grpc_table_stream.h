// The stream of one GetTable attempt over gRPC.
#ifndef POSENC_CLIENT_GRPC_TABLE_STREAM_H_
#define POSENC_CLIENT_GRPC_TABLE_STREAM_H_

#include <memory>

#include "posenc/connection.h"
#include "posenc/v1/service.grpc.pb.h"

namespace posenc {

// Never null; errors come from its first Read. A request whose tables make it larger
// than one message goes by GetTableFromUpload: it is written here, before this returns.
std::unique_ptr<TableStream> OpenTableStream(v1::PositionalEncodingService::Stub* stub,
                                             const v1::GetTableRequest& request,
                                             const CallContext& context);

}  // namespace posenc

#endif  // POSENC_CLIENT_GRPC_TABLE_STREAM_H_
