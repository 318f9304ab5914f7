// Client's retries: which errors, how many attempts, how long between them.
// The rule: RetryPolicy in posenc/options.h and the status table of the design.

#include "client/retry.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "posenc/client.h"
#include "posenc/v1/error_details.pb.h"
#include "tests/support/fake_peer.h"

namespace posenc::testing {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Return;

class ClientRetryTest : public ::testing::Test {
 protected:
  Client MakeClient() { return Client(connection_, OptionsWith(&time_)); }

  FakeTime time_;
  std::shared_ptr<MockConnection> connection_ =
      std::make_shared<::testing::StrictMock<MockConnection>>();
};

TEST_F(ClientRetryTest, UnavailableIsTriedAgainUntilItWorks) {
  v1::DescribeTableResponse response;
  response.add_slopes(0.5);
  EXPECT_CALL(*connection_, DescribeTable)
      .WillOnce(Return(Gone()))
      .WillOnce(Return(Gone()))
      .WillOnce(Return(response));
  const auto described = MakeClient().DescribeTable({});
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->slopes(0), 0.5);
}

TEST_F(ClientRetryTest, FourAttemptsThenTheServersErrorWithTheirNumber) {
  EXPECT_CALL(*connection_, GetServerInfo).Times(4).WillRepeatedly(Return(Gone()));
  const absl::Status status = MakeClient().GetServerInfo().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("lost (4 attempts)"));
}

TEST_F(ClientRetryTest, WaitsDoubleFromTheUpperHalfOf50Milliseconds) {
  EXPECT_CALL(*connection_, GetServerInfo).WillRepeatedly(Return(Gone()));
  EXPECT_FALSE(MakeClient().GetServerInfo().ok());
  EXPECT_THAT(time_.sleeps,
              ElementsAre(absl::Milliseconds(25), absl::Milliseconds(50), absl::Milliseconds(100)));
  time_.sleeps.clear();
  time_.random = 0.5;
  EXPECT_FALSE(MakeClient().GetServerInfo().ok());
  EXPECT_THAT(time_.sleeps, ElementsAre(absl::Milliseconds(37.5), absl::Milliseconds(75),
                                        absl::Milliseconds(150)));
}

TEST_F(ClientRetryTest, WaitsNeverGrowBeyondTheMaximum) {
  ClientOptions options = OptionsWith(&time_);
  options.retry.max_attempts = 9;
  EXPECT_CALL(*connection_, GetServerInfo).Times(9).WillRepeatedly(Return(Gone()));
  EXPECT_FALSE(Client(connection_, options).GetServerInfo().ok());
  // 50 ms * 2^5 is the first wait above 1 s.
  EXPECT_EQ(time_.sleeps.at(5), absl::Milliseconds(500));
  EXPECT_EQ(time_.sleeps.at(7), absl::Milliseconds(500));
}

TEST_F(ClientRetryTest, TheServersRetryInfoIsWaitedFor) {
  EXPECT_CALL(*connection_, GetServerInfo)
      .WillOnce(Return(GoneFor(absl::Milliseconds(2500))))
      .WillOnce(Return(GoneFor(absl::Milliseconds(1))))
      .WillOnce(Return(v1::GetServerInfoResponse()));
  EXPECT_TRUE(MakeClient().GetServerInfo().ok());
  EXPECT_THAT(time_.sleeps, ElementsAre(absl::Milliseconds(2500), absl::Milliseconds(50)));
}

TEST_F(ClientRetryTest, ARetryInfoThatMakesNoSenseIsNotFollowed) {
  absl::Status garbage = Gone();
  garbage.SetPayload("type.googleapis.com/google.rpc.RetryInfo", absl::Cord("\xff\xff"));
  EXPECT_CALL(*connection_, GetServerInfo)
      .WillOnce(Return(garbage))
      .WillOnce(Return(GoneFor(-absl::Seconds(5))))
      .WillOnce(Return(v1::GetServerInfoResponse()));
  EXPECT_TRUE(MakeClient().GetServerInfo().ok());
  EXPECT_THAT(time_.sleeps, ElementsAre(absl::Milliseconds(25), absl::Milliseconds(50)));
}

TEST_F(ClientRetryTest, ADelayBeyondTheDeadlineIsNotWaitedFor) {
  EXPECT_CALL(*connection_, GetServerInfo).WillOnce(Return(GoneFor(absl::Seconds(31))));
  const absl::Status status = MakeClient().GetServerInfo().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no time left to wait 31s"));
  EXPECT_TRUE(status.GetPayload("type.googleapis.com/google.rpc.RetryInfo").has_value());
  EXPECT_TRUE(time_.sleeps.empty());
}

TEST_F(ClientRetryTest, AllAttemptsShareOneDeadline) {
  std::vector<absl::Time> deadlines;
  EXPECT_CALL(*connection_, ResolveModelConfig)
      .WillRepeatedly([&](const v1::ResolveModelConfigRequest&, const CallContext& context) {
        deadlines.push_back(context.deadline);
        return Gone();
      });
  EXPECT_FALSE(MakeClient().ResolveModelConfig({}).ok());
  ASSERT_EQ(deadlines.size(), 4U);
  for (const absl::Time deadline : deadlines) {
    EXPECT_EQ(deadline, absl::UnixEpoch() + absl::Seconds(30));
  }
}

TEST_F(ClientRetryTest, NoOtherStatusIsTriedAgain) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kCancelled, absl::StatusCode::kUnknown,
        absl::StatusCode::kInvalidArgument, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kNotFound, absl::StatusCode::kPermissionDenied,
        absl::StatusCode::kResourceExhausted, absl::StatusCode::kFailedPrecondition,
        absl::StatusCode::kAborted, absl::StatusCode::kOutOfRange, absl::StatusCode::kUnimplemented,
        absl::StatusCode::kInternal, absl::StatusCode::kDataLoss,
        absl::StatusCode::kUnauthenticated}) {
    const absl::Status refusal(code, "no");
    EXPECT_CALL(*connection_, DescribeTable).WillOnce(Return(refusal));
    EXPECT_EQ(MakeClient().DescribeTable({}).status(), refusal);
  }
}

TEST_F(ClientRetryTest, AnErrorKeepsItsDetails) {
  absl::Status refusal = absl::InvalidArgumentError("rope.rotary_dim: must be even, got 65");
  refusal.SetPayload("type.googleapis.com/google.rpc.BadRequest", absl::Cord("detail"));
  EXPECT_CALL(*connection_, DescribeTable).WillOnce(Return(refusal));
  EXPECT_EQ(MakeClient().DescribeTable({}).status(), refusal);
}

TEST_F(ClientRetryTest, HealthIsAskedOnce) {
  EXPECT_CALL(*connection_, CheckHealth(std::string("a service"), _)).WillOnce(Return(Gone()));
  EXPECT_EQ(MakeClient().CheckHealth("a service"), Gone());
}

TEST(BackoffTest, TheRealClockDrawsWithinItsRange) {
  const Clock clock = CompleteClock({});
  for (int i = 0; i < 100; ++i) {
    const double drawn = clock.random();
    EXPECT_GE(drawn, 0.0);
    EXPECT_LT(drawn, 1.0);
  }
}

TEST(BackoffTest, OneAttemptMeansNoRetry) {
  FakeTime time;
  Backoff backoff(RetryPolicy{.max_attempts = 1}, CompleteClock(OptionsWith(&time).clock));
  EXPECT_TRUE(absl::IsUnavailable(backoff.WaitAfter(Gone(), absl::InfiniteFuture())));
  EXPECT_TRUE(time.sleeps.empty());
}

}  // namespace
}  // namespace posenc::testing
