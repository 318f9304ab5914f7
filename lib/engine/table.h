// A table that is being read: its header, and a cursor over its bytes.
//
// The reader pulls: Next() fills or finds one page and returns a slice that pins
// it, so a slow reader costs one page and a cancelled one costs nothing more.
#ifndef POSENC_LIB_ENGINE_TABLE_H_
#define POSENC_LIB_ENGINE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "lib/cache/page.h"
#include "lib/cache/single_flight_cache.h"
#include "lib/families/family.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Bytes of a table that stay where they are while `page` is held.
struct Slice {
  std::shared_ptr<const Page> page;
  std::span<const std::byte> bytes;
};

// Where pages come from: found, or filled into blocks of the pool.
struct PageSource {
  SingleFlightCache<Page>* cache;
  std::shared_ptr<BlockPool> pool;
  size_t page_bytes;  // a page holds as many units as fit (at least one)
};

// Not thread-safe: one reader.
class Table {
 public:
  // `spec_key` stands for the spec in the keys of pages.
  Table(v1::TableHeader header, TableShape shape, std::string spec_key,
        std::shared_ptr<const Plan> plan, PageSource pages, uint64_t offset);

  const v1::TableHeader& header() const { return header_; }

  // Of the next byte; header().total_bytes() at the end.
  uint64_t offset() const { return offset_; }
  bool done() const { return offset_ == header_.total_bytes(); }

  // The bytes from offset() to the end of their page, and moves past them.
  // REQUIRES: not done(). Not empty, at most about the engine's page_bytes.
  Slice Next();

  // The same where that computes nothing: null, and not moved, if the page is not in
  // the cache. REQUIRES: not done().
  std::optional<Slice> NextIfCached();

  // Everything from offset() to the end into `out`, which has that size and is in no
  // cache (Plan::FillCold), without pages. False, and not moved, where offset() is
  // inside a tensor, or elements would not be aligned.
  bool FillRest(std::span<std::byte> out);

 private:
  // Where offset_ lies. Addresses are of elements on the coordinate axis.
  struct Place {
    std::string key;  // of its page
    int64_t byte;     // on the axis, from address 0
    int64_t address;  // of the element that it belongs to
    int64_t element_bytes;
    int64_t page_begin;
    int64_t begin, end;  // what the table covers of the page
    bool is_whole_page;  // it covers all of it
  };

  Place Locate();
  std::shared_ptr<const Page> Fill(const Place& place, int64_t begin) const;
  Slice Take(const Place& place, std::shared_ptr<const Page> page, int64_t first);

  v1::TableHeader header_;
  TableShape shape_;
  std::string spec_key_;
  std::shared_ptr<const Plan> plan_;
  PageSource pages_;
  uint64_t offset_;
  size_t tensor_ = 0;  // the one that holds offset_
};

// Sets offset and bytes of each tensor, and total_bytes. False when a size
// overflows 63 bits.
bool SetTensors(const TableShape& shape, v1::TableHeader* header);

}  // namespace posenc

#endif  // POSENC_LIB_ENGINE_TABLE_H_
