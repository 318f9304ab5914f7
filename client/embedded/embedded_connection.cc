#include "posenc/embedded_connection.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "lib/engine/engine.h"

namespace posenc {
namespace {

// The header, then pages of the table as messages; each view pins its page until
// the next Read.
class EmbeddedTableStream final : public TableStream {
 public:
  explicit EmbeddedTableStream(absl::StatusOr<std::unique_ptr<Table>> table)
      : table_(std::move(table)) {}

  absl::StatusOr<std::optional<TableChunk>> Read() override {
    if (!table_.ok()) return table_.status();
    Table& table = **table_;
    if (started_ && table.done()) return std::nullopt;
    TableChunk chunk;
    chunk.offset = table.offset();
    if (!std::exchange(started_, true)) {
      chunk.header = &table.header();
    } else {
      slice_ = table.Next();
      chunk.data = slice_.bytes;
    }
    return chunk;
  }

  bool ReadRest(std::span<std::byte> out) override { return (*table_)->FillRest(out); }

 private:
  const absl::StatusOr<std::unique_ptr<Table>> table_;
  Slice slice_;
  bool started_ = false;
};

class EmbeddedConnection final : public Connection {
 public:
  explicit EmbeddedConnection(const EngineOptions& options) : engine_(options) {}

  std::unique_ptr<TableStream> GetTable(const v1::GetTableRequest& request,
                                        const CallContext&) override {
    return std::make_unique<EmbeddedTableStream>(engine_.GetTable(request));
  }
  absl::StatusOr<v1::DescribeTableResponse> DescribeTable(const v1::DescribeTableRequest& request,
                                                          const CallContext&) override {
    return engine_.DescribeTable(request);
  }
  absl::StatusOr<v1::ResolveModelConfigResponse> ResolveModelConfig(
      const v1::ResolveModelConfigRequest& request, const CallContext&) override {
    return engine_.ResolveModelConfig(request);
  }
  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo(const v1::GetServerInfoRequest&,
                                                          const CallContext&) override {
    return engine_.GetServerInfo();
  }
  absl::Status CheckHealth(const std::string&, const CallContext&) override {
    return absl::OkStatus();
  }

 private:
  Engine engine_;
};

}  // namespace

std::shared_ptr<Connection> MakeEmbeddedConnection(const EmbeddedOptions& options) {
  EngineOptions engine;
  engine.max_table_bytes = options.max_table_bytes;
  engine.max_position_ids = options.max_position_ids;
  engine.plan_cache_bytes = options.plan_cache_bytes;
  engine.page_cache_bytes = options.page_cache_bytes;
  return std::make_shared<EmbeddedConnection>(engine);
}

}  // namespace posenc
