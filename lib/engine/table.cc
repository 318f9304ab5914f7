#include "lib/engine/table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/families/store.h"

namespace posenc {
namespace {

int64_t FloorTo(int64_t value, int64_t multiple) {
  const int64_t remainder = value % multiple;
  return value - (remainder < 0 ? remainder + multiple : remainder);
}

bool IsAligned(const std::byte* data, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

}  // namespace

bool SetTensors(const TableShape& shape, v1::TableHeader* header) {
  uint64_t offset = 0;
  for (const Tensor& tensor : shape.tensors) {
    int64_t bytes = ElementBytes(tensor.dtype);
    for (const int64_t dim : tensor.shape) {
      if (__builtin_mul_overflow(bytes, dim, &bytes)) return false;
    }
    v1::TensorInfo* info = header->add_tensors();
    info->set_name(tensor.name);
    info->set_dtype(tensor.dtype);
    info->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    info->set_offset(offset);
    info->set_bytes(static_cast<uint64_t>(bytes));
    offset += static_cast<uint64_t>(bytes);
    if (offset > uint64_t{INT64_MAX}) return false;
  }
  header->set_total_bytes(offset);
  return true;
}

Table::Table(v1::TableHeader header, TableShape shape, std::string spec_key,
             std::shared_ptr<const Plan> plan, PageSource pages, uint64_t offset)
    : header_(std::move(header)),
      shape_(std::move(shape)),
      spec_key_(std::move(spec_key)),
      plan_(std::move(plan)),
      pages_(std::move(pages)),
      offset_(offset) {}

// Pages are cut at multiples of their size on the coordinate axis, so requests
// that overlap share them.
Table::Place Table::Locate() {
  while (offset_ >= header_.tensors(static_cast<int>(tensor_)).offset() +
                        header_.tensors(static_cast<int>(tensor_)).bytes()) {
    ++tensor_;
  }
  const v1::TensorInfo& info = header_.tensors(static_cast<int>(tensor_));
  const Tensor& tensor = shape_.tensors[tensor_];
  const int64_t element_bytes = ElementBytes(tensor.dtype);
  const int64_t units =
      std::max<int64_t>(1, static_cast<int64_t>(pages_.page_bytes) / (tensor.unit * element_bytes));
  const int64_t page_size = units * tensor.unit;
  const int64_t byte = static_cast<int64_t>(offset_ - info.offset());

  Place place;
  place.byte = byte + tensor.origin * element_bytes;
  place.address = tensor.origin + byte / element_bytes;
  const int64_t page_begin = FloorTo(place.address, page_size);
  place.element_bytes = element_bytes;
  place.page_begin = page_begin;
  place.begin = std::max(page_begin, tensor.origin);
  place.end = std::min(page_begin + page_size, tensor.origin + tensor.size());
  place.is_whole_page = place.end - place.begin == page_size;
  place.key = absl::StrCat(
      absl::string_view(reinterpret_cast<const char*>(&page_begin), sizeof(page_begin)),
      absl::string_view(reinterpret_cast<const char*>(&page_size), sizeof(page_size)),
      static_cast<int>(shape_.format.layout()), ":", tensor_, ":", static_cast<int>(tensor.dtype),
      ":", spec_key_, shape_.coordinates_key);
  return place;
}

std::shared_ptr<const Page> Table::Fill(const Place& place, int64_t begin) const {
  const auto page = std::make_shared<Page>(
      static_cast<size_t>((place.end - begin) * place.element_bytes), pages_.pool);
  plan_->Fill(shape_, tensor_, begin, page->mutable_data());
  return page;
}

// The bytes from the place on, of a page whose first byte has the address `first`.
Slice Table::Take(const Place& place, std::shared_ptr<const Page> page, int64_t first) {
  const auto skip = static_cast<size_t>(place.byte - first * place.element_bytes);
  const size_t size = static_cast<size_t>((place.end - first) * place.element_bytes) - skip;
  Slice slice{std::move(page), {}};
  slice.bytes = slice.page->data().subspan(skip, size);
  offset_ += size;
  return slice;
}

// Where a table covers a page only in part (its ends), the rest of that page is never
// computed: the part is taken from a cached page if there is one, or filled alone and
// not kept.
Slice Table::Next() {
  const Place place = Locate();
  if (place.is_whole_page) {
    return Take(place,
                pages_.cache->FindOrMake(place.key, [&] { return Fill(place, place.begin); }),
                place.page_begin);
  }
  if (auto page = pages_.cache->Find(place.key); page != nullptr) {
    return Take(place, std::move(page), place.page_begin);
  }
  const int64_t first = FloorTo(place.address, shape_.tensors[tensor_].unit);
  return Take(place, Fill(place, first), first);
}

bool Table::FillRest(std::span<std::byte> out) {
  std::vector<TensorPart> parts;
  bool begins_a_tensor = false;
  for (size_t i = 0; i < shape_.tensors.size(); ++i) {
    const v1::TensorInfo& info = header_.tensors(static_cast<int>(i));
    if (info.offset() < offset_ || info.bytes() == 0) continue;
    begins_a_tensor = begins_a_tensor || info.offset() == offset_;
    const Tensor& tensor = shape_.tensors[i];
    parts.push_back({i, tensor.origin, out.subspan(info.offset() - offset_, info.bytes())});
    if (!IsAligned(parts.back().out.data(), ElementBytes(tensor.dtype))) return false;
  }
  if (!begins_a_tensor) return false;
  plan_->FillCold(shape_, parts);
  offset_ = header_.total_bytes();
  return true;
}

std::optional<Slice> Table::NextIfCached() {
  const Place place = Locate();
  auto page = pages_.cache->Find(place.key);
  if (page == nullptr) return std::nullopt;
  return Take(place, std::move(page), place.page_begin);
}

}  // namespace posenc
