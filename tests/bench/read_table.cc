#include "tests/bench/read_table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "grpcpp/grpcpp.h"
#include "posenc/v1/service.grpc.pb.h"
#include "tests/bench/memory.h"
#include "tests/bench/rounds.h"

namespace posenc::bench {
namespace {

constexpr double kFailed = std::numeric_limits<double>::infinity();

// COS_SIN, EXACT, f32, 128 wide: 512 bytes a position.
v1::GetTableRequest RopeRequest(uint64_t bytes) {
  v1::GetTableRequest request;
  v1::RopeSpec* rope = request.mutable_spec()->mutable_rope();
  rope->set_head_dim(128);
  rope->set_rope_theta(500000);
  rope->set_arithmetic(v1::ARITHMETIC_EXACT);
  request.mutable_selection()->mutable_position_range()->set_end(static_cast<int64_t>(bytes / 512));
  return request;
}

double ReadNaively(v1::PositionalEncodingService::Stub* stub, uint64_t chunk,
                   std::span<std::byte> out) {
  return Timed([&] {
    grpc::ClientContext context;
    v1::GetTableRequest request;
    request.set_read_offset(chunk);
    const auto reader = stub->GetTable(&context, request);
    v1::GetTableResponse response;
    while (reader->Read(&response)) {
      std::memcpy(out.data() + response.offset(), response.data().data(), response.data().size());
    }
    reader->Finish().ok();
  });
}

}  // namespace

double ReadTable(const Client& client, uint64_t bytes, std::span<std::byte> out) {
  bool ok = true;
  const double seconds = Timed([&] {
    absl::StatusOr<TableReader> table = client.GetTable(RopeRequest(bytes));
    ok = table.ok();
    while (ok && table->offset() < bytes) {
      ok = table->Read(out.first(std::min(out.size(), bytes - table->offset()))).ok();
    }
  });
  return ok ? seconds : kFailed;
}

// Both make what they need when they first run: in the child.

std::function<double(uint64_t)> TableReaderOf(const std::string& address) {
  return [address](uint64_t bytes) {
    static const Client client(MakeConnection(address));
    static const Region out(kTableBytes);
    return ReadTable(client, bytes, out.bytes());
  };
}

std::function<double(uint64_t)> NaiveReaderOf(const std::string& address) {
  return [address](uint64_t chunk) {
    static const auto stub = v1::PositionalEncodingService::NewStub(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    static const Region out(kTableBytes);
    return ReadNaively(stub.get(), chunk, out.bytes());
  };
}

}  // namespace posenc::bench
