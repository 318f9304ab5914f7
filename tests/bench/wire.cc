// Streaming a table from a real server process into memory that is there already:
// against a raw socket, against the usual gRPC code, and against memcpy.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "posenc/client.h"
#include "posenc/v1/service.grpc.pb.h"
#include "tests/bench/cases.h"
#include "tests/bench/read_table.h"
#include "tests/bench/usage.h"
#include "tests/bench/wire_peers.h"

namespace posenc::bench {
namespace {

constexpr size_t kLargeBytes = size_t{1} << 30;
constexpr double kGiB = 0x1p30;

struct Size {
  const char* name;
  uint64_t bytes;
};
constexpr Size kSmallSizes[] = {{" 16 KiB", 16u << 10},
                                {" 128 KiB", 128u << 10},
                                {" 1 MiB", 1u << 20},
                                {" 4 MiB", 4u << 20},
                                {" 16 MiB", 16u << 20}};
constexpr Size kLargeSizes[] = {{"", kTableBytes}, {" 1 GiB", kLargeBytes}};
constexpr Size k4GiB = {" 4 GiB", uint64_t{4} << 30};
constexpr Size kNaiveChunks[] = {{" 64 KiB", 64u << 10}, {" 1 MiB", 1u << 20}};

double ReadRawSocket(int socket, std::span<std::byte> out) {
  return Timed([&] {
    const uint64_t bytes = out.size();
    if (send(socket, &bytes, sizeof(bytes), 0) != sizeof(bytes)) std::abort();
    for (size_t at = 0; at < out.size();) {
      const ssize_t count = recv(socket, out.data() + at, out.size() - at, 0);
      if (count <= 0) std::abort();
      at += static_cast<size_t>(count);
    }
  });
}

// A table is read so often that a run lasts: the first read after other work finds cold
// caches and idle threads, whoever reads.
double Repeat(uint64_t bytes, const std::function<double()>& read) {
  constexpr uint64_t kBytesOfARun = 4 * kTableBytes;
  const auto reads = std::clamp<uint64_t>(kBytesOfARun / bytes, 1, 64);
  double seconds = 0;
  for (uint64_t i = 0; i < reads; ++i) seconds += read();
  return seconds / static_cast<double>(reads);
}

class WireCases : public std::enable_shared_from_this<WireCases> {
 public:
  WireCases(Rounds* rounds, std::shared_ptr<WirePeers> peers, std::span<std::byte> out)
      : rounds_(rounds), peers_(std::move(peers)), out_(out), table_(out.first(kTableBytes)) {}
  ~WireCases() {
    for (const int socket : sockets_) close(socket);
  }

  // The names of cases are "cached tcp", "generated unix 1 GiB" and so on.
  void AddTo(bool is_unix) {
    const std::string on = is_unix ? " unix" : " tcp";
    AddRaw(is_unix, on);
    AddNaive(is_unix, on);
    AddReads("cached" + on, peers_->server.pid(), peers_->server.addresses().on(is_unix));
    AddReads("generated" + on, peers_->uncached.pid(), peers_->uncached.addresses().on(is_unix));
  }

  double Memcpy() {
    const std::span<std::byte> from = out_.subspan(kTableBytes, kTableBytes);
    return Timed([&] { std::memcpy(table_.data(), from.data(), from.size()); });
  }

 private:
  void AddRaw(bool is_unix, const std::string& on) {
    const int socket =
        ConnectRawSocket(peers_->raw_tcp.port(), is_unix ? peers_->raw_path : std::string());
    sockets_.push_back(socket);
    for (const auto& [size, bytes] : kLargeSizes) {
      if (bytes > out_.size()) continue;
      const std::span<std::byte> to = out_.first(bytes);
      rounds_->Add("raw" + on + size,
                   [=] { return Repeat(to.size(), [&] { return ReadRawSocket(socket, to); }); });
    }
  }

  void AddNaive(bool is_unix, const std::string& on) {
    Worker* const client = &(is_unix ? peers_->naive_unix_client : peers_->naive_tcp_client);
    for (const auto& [size, chunk] : kNaiveChunks) {
      AddWatched(
          "naive" + on + size, peers_->naive.pid(), client->pid(), kTableBytes,
          [=, bytes = chunk] { return Repeat(kTableBytes, [&] { return client->Run(bytes); }); });
    }
  }

  void AddReads(const std::string& name, pid_t server, const std::string& address) {
    const auto client = std::make_shared<Client>(MakeConnection(address));
    std::vector<Size> sizes(std::begin(kSmallSizes), std::end(kSmallSizes));
    for (const Size& size : kLargeSizes) {
      if (size.bytes <= out_.size()) sizes.push_back(size);
    }
    if (name == "cached tcp") {
      Worker* const untuned = &peers_->untuned_client;
      AddWatched("cached tcp untuned", server, untuned->pid(), kTableBytes,
                 [=] { return Repeat(kTableBytes, [&] { return untuned->Run(kTableBytes); }); });
    }
    if (name == "generated tcp" && out_.size() >= kLargeBytes) sizes.push_back(k4GiB);
    for (const auto& [size, bytes] : sizes) {
      AddWatched(name + size, server, 0, bytes, [=, this, n = bytes] {
        return Repeat(n, [&] { return ReadTable(*client, n, out_); });
      });
    }
  }

  // Notes what the run costs a GiB, and what both sides use meanwhile.
  void AddWatched(const std::string& name, pid_t server, pid_t client, uint64_t bytes,
                  const std::function<double()>& run) {
    rounds_->Add(name, [=, self = shared_from_this()] {
      const Usage server_before = UsageOf(server);
      const Usage client_before = UsageOf(client);
      const double seconds = run();
      const Usage server_after = UsageOf(server);
      const Usage client_after = UsageOf(client);
      const auto note = [&](const char* what, double number) {
        self->rounds_->Note(name + what, number);
      };
      note(" s/GiB", seconds * kGiB / static_cast<double>(bytes));
      note(" cpu", server_after.cpu_seconds - server_before.cpu_seconds + client_after.cpu_seconds -
                       client_before.cpu_seconds);
      note(" server cpu", server_after.cpu_seconds - server_before.cpu_seconds);
      note(" server faults", server_after.page_faults - server_before.page_faults);
      note(" client faults", client_after.page_faults - client_before.page_faults);
      return seconds;
    });
  }

  Rounds* const rounds_;
  const std::shared_ptr<WirePeers> peers_;
  const std::span<std::byte> out_;
  const std::span<std::byte> table_;  // the first 64 MiB
  std::vector<int> sockets_;
};

}  // namespace

void AddWireCases(Rounds* rounds, const std::shared_ptr<WirePeers>& peers, const Region& region) {
  const auto cases = std::make_shared<WireCases>(rounds, peers, region.bytes());
  rounds->Add("memcpy", [=] { return cases->Memcpy(); });
  for (const bool is_unix : {false, true}) cases->AddTo(is_unix);
}

namespace {

void AddStreamGoals(const std::string& on, std::vector<Goal>* goals) {
  for (const std::string from : {"cached", "generated"}) {
    const std::string of = ", " + from + "," + on;
    goals->push_back(
        {"G11", "stream of 64 MiB" + of + " / raw TCP cubic", from + on, "raw tcp", 0.70});
    goals->push_back({"G11", "stream of 1 GiB" + of + " / raw TCP cubic", from + on + " 1 GiB",
                      "raw tcp 1 GiB", 0.75});
    const bool is_tcp = on == " tcp";
    goals->push_back({"G12", "stream of 64 MiB" + of + " / usual gRPC code, 1 MiB chunks",
                      from + on, "naive" + on + " 1 MiB", is_tcp ? 2.0 : 1.5});
    goals->push_back({"G12", "stream of 64 MiB" + of + " / usual gRPC code, 64 KiB chunks",
                      from + on, "naive" + on + " 64 KiB", is_tcp ? 2.5 : 2.4});
    goals->push_back({"G13", "the same, CPU / usual gRPC code, 64 KiB chunks", from + on + " cpu",
                      "naive" + on + " 64 KiB cpu", 1 / 0.40});
    goals->push_back({"G13", "the same, CPU / usual gRPC code, 1 MiB chunks", from + on + " cpu",
                      "naive" + on + " 1 MiB cpu", 1 / 0.52});
  }
  goals->push_back({"", "stream of 64 MiB, cached," + on + " / raw socket of its kind",
                    "cached" + on, "raw" + on, 0});
  goals->push_back(
      {"", "stream of 64 MiB, cached," + on + " / memcpy", "cached" + on, "memcpy", 0});
}

}  // namespace

std::vector<Goal> WireGoals() {
  std::vector<Goal> goals;
  for (const char* on : {" tcp", " unix"}) AddStreamGoals(on, &goals);
  for (const char* on : {" tcp", " unix"}) {
    for (const char* size : {" 16 KiB", " 128 KiB", " 1 MiB", " 4 MiB", " 16 MiB", "", " 1 GiB"}) {
      const std::string text = *size == 0 ? " 64 MiB" : size;
      const bool small = text.ends_with(" KiB") || text == " 1 MiB";
      goals.push_back({"G18", absl::StrCat("generated / cached,", text, ",", on),
                       absl::StrCat("generated", on, size), absl::StrCat("cached", on, size),
                       1 / (small ? 1.25 : 1.1)});
    }
    for (const char* from : {"cached", "generated"}) {
      goals.push_back({"G19", absl::StrCat("page faults of the server, 64 MiB, ", from, ",", on),
                       absl::StrCat(from, on, " server faults"), "", 0});
      goals.push_back({"", absl::StrCat("page faults of the client, the same"),
                       absl::StrCat(from, on, " client faults"), "", 0});
    }
  }
  goals.push_back({"", "64 MiB, cached, tcp: malloc tuned to keep pages / untuned", "cached tcp",
                   "cached tcp untuned", 0});
  goals.push_back(
      {"", "page faults of the untuned client", "cached tcp untuned client faults", "", 0});
  for (const char* size :
       {" 16 KiB", " 128 KiB", " 1 MiB", " 4 MiB", " 16 MiB", " 1 GiB", " 4 GiB"}) {
    goals.push_back({"", absl::StrCat("speed a byte,", size, " / 64 MiB, generated, tcp"),
                     absl::StrCat("generated tcp", size, " s/GiB"), "generated tcp s/GiB", 0});
  }
  return goals;
}

}  // namespace posenc::bench
