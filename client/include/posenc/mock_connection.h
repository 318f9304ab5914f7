// A Connection for the tests of code that uses a Client.
//
//   auto connection = std::make_shared<posenc::MockConnection>();
//   EXPECT_CALL(*connection, DescribeTable).WillOnce(Return(response));
//   posenc::Client client(connection);
#ifndef POSENC_MOCK_CONNECTION_H_
#define POSENC_MOCK_CONNECTION_H_

#include <memory>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "posenc/connection.h"

namespace posenc {

class MockTableStream : public TableStream {
 public:
  MOCK_METHOD(absl::StatusOr<std::optional<TableChunk>>, Read, (), (override));
};

class MockConnection : public Connection {
 public:
  MOCK_METHOD(std::unique_ptr<TableStream>, GetTable,
              (const v1::GetTableRequest& request, const CallContext& context), (override));
  MOCK_METHOD(absl::StatusOr<v1::DescribeTableResponse>, DescribeTable,
              (const v1::DescribeTableRequest& request, const CallContext& context), (override));
  MOCK_METHOD(absl::StatusOr<v1::ResolveModelConfigResponse>, ResolveModelConfig,
              (const v1::ResolveModelConfigRequest& request, const CallContext& context),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::GetServerInfoResponse>, GetServerInfo,
              (const v1::GetServerInfoRequest& request, const CallContext& context), (override));
  MOCK_METHOD(absl::Status, CheckHealth, (const std::string& service, const CallContext& context),
              (override));
};

}  // namespace posenc

#endif  // POSENC_MOCK_CONNECTION_H_
