// --table: files as numpy and safetensors write them, and files that are broken.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/array_file.h"
#include "client/cli/exit_code.h"
#include "client/cli/table_input.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace posenc::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string Npy(const std::string& dictionary, const std::string& data) {
  const auto length = static_cast<uint16_t>(dictionary.size());
  return absl::StrCat(std::string("\x93NUMPY\x01\x00", 8), BytesOf(std::vector<uint16_t>{length}),
                      dictionary, data);
}

std::string Safetensors(const std::string& json, const std::string& data) {
  return absl::StrCat(BytesOf(std::vector<uint64_t>{json.size()}), json, data);
}

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  int begin, int end) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":[", shape,
                      "],\"data_offsets\":[", begin, ",", end, "]}");
}

constexpr char kTwoByThree[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }     \n";

class TableInputTest : public ::testing::Test {
 protected:
  TableInputTest() { std::filesystem::create_directory(folder_); }
  ~TableInputTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  // The table that --table puts into a T5 spec.
  static absl::StatusOr<v1::FloatTable> T5Table(const std::string& argument) {
    v1::EncodingSpec spec;
    spec.mutable_t5();
    if (absl::Status status = ReadTableInto(argument, &spec); !status.ok()) return status;
    return spec.t5().bias_table();
  }

  const std::string folder_ =
      absl::StrCat(::testing::TempDir(), "/table_input_",
                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(TableInputTest, AnNpyFile) {
  const std::string data = BytesOf<float>({1, 2, 3, 4, 5, 6});
  const auto table = T5Table(Write("a.npy", Npy(kTwoByThree, data)));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->shape(), ElementsAre(2, 3));
  EXPECT_EQ(table->f32(), data);
}

// 1, -2 and 0.5 in each dtype; none of them is rounded.
TEST_F(TableInputTest, EveryDTypeOfASafetensorsFile) {
  const std::string data = absl::StrCat(BytesOf<double>({1, -2, 0.5}), BytesOf<float>({1, -2, 0.5}),
                                        BytesOf<uint16_t>({0x3c00, 0xc000, 0x3800}),
                                        BytesOf<uint16_t>({0x3f80, 0xc000, 0x3f00}));
  const std::string json = absl::StrCat(
      "{\"__metadata__\":{\"format\":\"pt\"},", Entry("double", "F64", "3, 1", 0, 24), ",",
      Entry("float", "F32", "3, 1", 24, 36), ",", Entry("half", "F16", "3, 1", 36, 42), ",",
      Entry("b.float", "BF16", "3, 1", 42, 48), "}");
  const std::string path = Write("a.safetensors", Safetensors(json, data));
  for (const char* name : {"double", "float", "half", "b.float"}) {
    const auto table = T5Table(absl::StrCat(path, ":", name));
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_THAT(table->shape(), ElementsAre(3, 1));
    EXPECT_EQ(table->f32(), BytesOf<float>({1, -2, 0.5})) << name;
  }
  EXPECT_THAT(T5Table(path).status().message(), HasSubstr("holds several tensors"));
  EXPECT_THAT(T5Table(path + ":none").status().message(), HasSubstr("has no tensor none, but "));
}

TEST_F(TableInputTest, TheOnlyTensorNeedsNoName) {
  const std::string json = absl::StrCat("{", Entry("only", "F32", "1", 0, 4), "}");
  const auto table = T5Table(Write("a.safetensors", Safetensors(json, BytesOf<float>({7}))));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->f32(), BytesOf<float>({7}));
}

TEST_F(TableInputTest, AFamilyWithTwoTablesIsToldWhich) {
  const std::string path = Write("a.npy", Npy(kTwoByThree, BytesOf<float>({1, 2, 3, 4, 5, 6})));
  v1::EncodingSpec spec;
  spec.mutable_hstu_time_bias();
  EXPECT_EQ(ReadTableInto(path, &spec).message(),
            "--table: must be FIELD=FILE, FIELD one of position_table, time_table");
  EXPECT_TRUE(ReadTableInto("time_table=" + path, &spec).ok());
  EXPECT_EQ(spec.hstu_time_bias().time_table().shape_size(), 2);
  EXPECT_FALSE(spec.hstu_time_bias().has_position_table());
}

TEST_F(TableInputTest, WrongUsage) {
  v1::EncodingSpec spec;
  EXPECT_EQ(ExitCodeOf(ReadTableInto("a.npy", &spec)), kUsage);
  spec.mutable_alibi();
  EXPECT_EQ(ReadTableInto("a.npy", &spec).message(), "--table: alibi takes none");
  spec.mutable_t5();
  EXPECT_EQ(ExitCodeOf(ReadTableInto("a.bin", &spec)), kUsage);
  EXPECT_EQ(ExitCodeOf(ReadTableInto("a=b.npy", &spec)), kUsage);
  EXPECT_EQ(ExitCodeOf(ReadTableInto("no-such.npy", &spec)), kFile);
  EXPECT_EQ(ExitCodeOf(ReadTableInto(folder_ + ".npy", &spec)), kFile);
}

// Whatever a file says, nothing outside it is read.
TEST_F(TableInputTest, BrokenFilesAreRefused) {
  const std::string npy = Npy(kTwoByThree, BytesOf<float>({1, 2, 3, 4, 5, 6}));
  for (size_t size = 0; size < npy.size(); ++size) {
    EXPECT_FALSE(ParseNpy(npy.substr(0, size), size).ok()) << size;
  }
  const std::string json = absl::StrCat("{", Entry("a", "F32", "1", 0, 4), "}");
  const std::string file = Safetensors(json, BytesOf<float>({7}));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseSafetensors(file.substr(0, size), size, "").ok()) << size;
  }
  for (const char* dictionary :
       {"{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }",
        "{'descr': '<f4', 'fortran_order': False, }", "{'shape': (1,), }", "", "'shape':"}) {
    const std::string broken = Npy(dictionary, BytesOf<float>({7}));
    EXPECT_FALSE(ParseNpy(broken, broken.size()).ok()) << dictionary;
  }
  for (const std::string& entries :
       {Entry("a", "I64", "1", 0, 4), Entry("a", "F32", "-1", 0, 4), Entry("a", "F32", "1", 4, 0),
        Entry("a", "F32", "2", 0, 8), Entry("a", "F32", "1", -4, 4), Entry("a", "F32", "x", 0, 4),
        std::string("\"a\":5"), std::string("\"a\":{}"), std::string()}) {
    const std::string broken = Safetensors(absl::StrCat("{", entries, "}"), BytesOf<float>({7}));
    EXPECT_FALSE(ParseSafetensors(broken, broken.size(), "").ok()) << entries;
  }
}

}  // namespace
}  // namespace posenc::cli
