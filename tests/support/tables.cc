#include "tests/support/tables.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/families/store.h"

namespace posenc::testing {
namespace {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

}  // namespace

v1::EncodingSpec Spec(const std::string& text) { return Parse<v1::EncodingSpec>(text); }
v1::Selection Select(const std::string& text) { return Parse<v1::Selection>(text); }
v1::TensorFormat Format(const std::string& text) { return Parse<v1::TensorFormat>(text); }

v1::Selection SelectGrid(int64_t query_length, int64_t key_length, int64_t query_offset) {
  v1::Selection selection;
  v1::AttentionGrid* grid = selection.mutable_attention_grid();
  grid->set_query_length(query_length);
  grid->set_key_length(key_length);
  grid->set_query_offset(query_offset);
  return selection;
}

v1::Selection SelectRange(int64_t begin, int64_t end) {
  v1::Selection selection;
  selection.mutable_position_range()->set_begin(begin);
  selection.mutable_position_range()->set_end(end);
  return selection;
}

v1::Selection SelectIds(const std::vector<int64_t>& ids) {
  v1::Selection selection;
  selection.mutable_position_ids()->mutable_ids()->Add(ids.begin(), ids.end());
  return selection;
}

absl::StatusOr<FilledTable> FillTable(const v1::EncodingSpec& spec, const v1::Selection& selection,
                                      const v1::TensorFormat& format) {
  ASSIGN_OR_RETURN(const CanonicalSpec canonical, Canonicalize(spec));
  const Family& family = FamilyOf(canonical.proto());
  FilledTable table;
  ASSIGN_OR_RETURN(table.shape, family.Resolve(canonical, selection, format));
  const std::shared_ptr<const Plan> plan = family.MakePlan(canonical);
  plan->Describe(&table.description);
  for (size_t i = 0; i < table.shape.tensors.size(); ++i) {
    FilledTensor filled{table.shape.tensors[i], {}};
    filled.bytes.resize(
        static_cast<size_t>(filled.tensor.size() * ElementBytes(filled.tensor.dtype)));
    plan->Fill(table.shape, i, filled.tensor.origin, filled.bytes);
    table.tensors.push_back(std::move(filled));
  }
  return table;
}

FilledTensor FillOne(const std::string& spec, const v1::Selection& selection,
                     const std::string& format) {
  absl::StatusOr<FilledTable> table = FillTable(Spec(spec), selection, Format(format));
  EXPECT_TRUE(table.ok()) << table.status();
  if (!table.ok() || table->tensors.size() != 1) return {};
  return std::move(table->tensors.front());
}

void ExpectPartsEqualWhole(const v1::EncodingSpec& spec, const v1::Selection& selection,
                           const v1::TensorFormat& format, int64_t units) {
  const absl::StatusOr<FilledTable> whole = FillTable(spec, selection, format);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const absl::StatusOr<CanonicalSpec> canonical = Canonicalize(spec);
  const std::shared_ptr<const Plan> plan = FamilyOf(canonical->proto()).MakePlan(*canonical);
  for (size_t i = 0; i < whole->tensors.size(); ++i) {
    const Tensor& tensor = whole->shape.tensors[i];
    const std::vector<std::byte>& expected = whole->tensors[i].bytes;
    const int64_t width = ElementBytes(tensor.dtype);
    std::vector<std::byte> parts(expected.size());
    for (int64_t begin = 0; begin < tensor.size(); begin += units * tensor.unit) {
      const int64_t end = std::min(begin + units * tensor.unit, tensor.size());
      plan->Fill(whole->shape, i, tensor.origin + begin,
                 std::span(parts).subspan(static_cast<size_t>(begin * width),
                                          static_cast<size_t>((end - begin) * width)));
    }
    EXPECT_EQ(parts, expected) << tensor.name << " in parts of " << units << " units";
  }
}

std::string SpecRefusal(const std::string& spec) {
  return std::string(Canonicalize(Spec(spec)).status().message());
}

std::string TableRefusal(const std::string& spec, const v1::Selection& selection,
                         const std::string& format) {
  return std::string(FillTable(Spec(spec), selection, Format(format)).status().message());
}

void ExpectIdempotent(const std::string& spec) {
  const absl::StatusOr<CanonicalSpec> once = Canonicalize(Spec(spec));
  ASSERT_TRUE(once.ok()) << once.status();
  const absl::StatusOr<CanonicalSpec> twice = Canonicalize(once->proto());
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_EQ(once->key(), twice->key()) << spec;
}

}  // namespace posenc::testing
