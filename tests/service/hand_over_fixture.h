// A server that shares memory, and readers that speak to it by hand.
#ifndef POSENC_TESTS_SERVICE_HAND_OVER_FIXTURE_H_
#define POSENC_TESTS_SERVICE_HAND_OVER_FIXTURE_H_

#include <memory>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "posenc/client.h"
#include "posenc/v1/hand_over.pb.h"
#include "tests/service/test_server.h"
#include "tests/support/process.h"
#include "tests/support/unix_socket.h"

namespace posenc::testing {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

class HandOverFixture : public ::testing::Test {
 protected:
  HandOverFixture() { options_.share_memory = true; }

  void Start() { server_ = std::make_unique<TestServer>(options_); }

  // One exchange by a reader that behaves.
  v1::HandOverReply Ask(const v1::GetTableRequest& request) {
    UnixSocket socket(memfd_path_);
    EXPECT_TRUE(socket.Send(Framed(request)));
    v1::HandOverReply reply;
    EXPECT_TRUE(socket.Receive(&reply));
    EXPECT_THAT(socket.descriptors(), ::testing::SizeIs(reply.has_error() ? 0 : 1));
    EXPECT_EQ(socket.ReceiveRest(), "");
    return reply;
  }

  absl::StatusOr<TableReader> Open(const v1::GetTableRequest& request) {
    ClientOptions options;
    options.share_memory = true;
    return Client(MakeConnection("unix:" + path_, options)).GetTable(request);
  }

  // Nobody is left inside.
  void WaitUntilEmpty() {
    while (server_->Info().active_streams() > 0) std::this_thread::yield();
  }

  const std::string path_ = TemporaryPath("posenc.sock");
  const std::string memfd_path_ = path_ + ".memfd";
  server::ServerOptions options_ = [this] {
    server::ServerOptions options = TestOptions();
    options.listen = {"unix:" + path_};
    return options;
  }();
  Gate gate_;
  std::unique_ptr<TestServer> server_;
};

template <typename Detail>
Detail DetailIn(const v1::HandOverReply& reply) {
  Detail detail;
  EXPECT_EQ(reply.error().details_size(), 1);
  EXPECT_EQ(reply.error().details(0).type_url(),
            "type.googleapis.com/google.rpc." + Detail::descriptor()->name());
  EXPECT_TRUE(detail.ParseFromString(reply.error().details(0).value()));
  return detail;
}

inline int CodeOf(absl::StatusCode code) { return static_cast<int>(code); }

}  // namespace posenc::testing

#endif  // POSENC_TESTS_SERVICE_HAND_OVER_FIXTURE_H_
