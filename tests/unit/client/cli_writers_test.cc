// The file formats byte by byte, and files that appear whole or not at all.
// Other readers (struct, json, numpy) are asked in tests/e2e/cli_test.py.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "client/cli/exit_code.h"
#include "client/cli/npy_writer.h"
#include "client/cli/output_file.h"
#include "client/cli/safetensors_writer.h"
#include "client/cli/summary.h"
#include "client/cli/table_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace posenc::cli {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

v1::TableHeader MakeHeader(v1::DType dtype = v1::DTYPE_F32, int tensors = 1) {
  v1::TableHeader header;
  header.set_table_id("0123456789abcdef0123456789abcdef");
  header.set_numerics_version("rope-1");
  header.set_attention_factor(0.1);
  header.mutable_spec()->mutable_rope()->set_pairing(v1::PAIRING_HALF);
  for (int i = 0; i < tensors; ++i) {
    v1::TensorInfo* tensor = header.add_tensors();
    tensor->set_name(i == 0 ? "cos" : "sin");
    tensor->set_dtype(dtype);
    tensor->add_shape(2);
    tensor->add_shape(3);
    tensor->set_offset(header.total_bytes());
    tensor->set_bytes(24);
    header.set_total_bytes(header.total_bytes() + 24);
  }
  return header;
}

// A folder of the test's own.
class WritersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "posenc.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }

  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static void Put(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }

  size_t FilesInFolder() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

TEST_F(WritersTest, SafetensorsIsALengthJsonAndTheBytes) {
  const std::string path = Path("table.safetensors");
  const v1::TableHeader header = MakeHeader(v1::DTYPE_F32, 2);
  const std::string hash = "fedcba9876543210fedcba9876543210";
  {
    auto writer = OpenTableWriter(path).value();
    ASSERT_TRUE(writer->Begin(header).ok());
    ASSERT_TRUE(writer->Append(Bytes(std::string(20, 'a'))).ok());
    ASSERT_TRUE(writer->Append(Bytes(std::string(28, 'b'))).ok());
    ASSERT_TRUE(writer->End(hash).ok());
  }
  const std::string expected_json =
      R"({"__metadata__":{"format":"pt","table_id":"0123456789abcdef0123456789abcdef",)"
      R"("content_hash":"fedcba9876543210fedcba9876543210","numerics_version":"rope-1",)"
      R"("spec":"{\"rope\":{\"pairing\":\"PAIRING_HALF\"}}","attention_factor":"0.1",)"
      R"("pairing":"half","profile":""},)"
      R"("cos":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("sin":{"dtype":"F32","shape":[2,3],"data_offsets":[24,48]}})";
  const std::string content = Content(path);
  const size_t padded = (expected_json.size() + 7) / 8 * 8;
  ASSERT_EQ(content.size(), 8 + padded + 48);
  EXPECT_EQ(static_cast<unsigned char>(content[0]) + 256 * static_cast<unsigned char>(content[1]),
            static_cast<int>(padded));
  EXPECT_EQ(content.substr(2, 6), std::string(6, '\0'));
  EXPECT_EQ(content.substr(8, expected_json.size()), expected_json);
  EXPECT_EQ(content.substr(8 + padded), std::string(20, 'a') + std::string(28, 'b'));
}

TEST_F(WritersTest, SafetensorsDataIsAlignedWhateverTheNames) {
  v1::TableHeader header = MakeHeader();
  for (int i = 0; i < 16; ++i) {
    header.mutable_format()->mutable_profile()->push_back('x');
    EXPECT_EQ(SafetensorsHeader(header, std::string(32, '0')).size() % 8, 0U);
  }
}

TEST_F(WritersTest, NpyIsTheDictionaryOfVersionOneAlignedTo64) {
  const std::string header = NpyHeader(MakeHeader()).value();
  EXPECT_EQ(header.size() % 64, 0U);
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(static_cast<size_t>(header[8]), header.size() - 10);
  EXPECT_THAT(header, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_EQ(header.back(), '\n');
}

TEST_F(WritersTest, NpyShapeOfOneDimensionIsATuple) {
  v1::TableHeader header = MakeHeader();
  header.mutable_tensors(0)->clear_shape();
  header.mutable_tensors(0)->add_shape(6);
  EXPECT_THAT(NpyHeader(header).value(), HasSubstr("'shape': (6,), }"));
}

TEST_F(WritersTest, NpyRefusesBf16AndSeveralTensorsAndNamesSafetensors) {
  for (const v1::TableHeader& header :
       {MakeHeader(v1::DTYPE_BF16), MakeHeader(v1::DTYPE_F32, 2), MakeHeader(v1::DTYPE_F32, 0)}) {
    const absl::Status status = NpyHeader(header).status();
    EXPECT_EQ(ExitCodeOf(status), kRefused);
    EXPECT_THAT(std::string(status.message()), HasSubstr(".safetensors"));
  }
}

TEST_F(WritersTest, TheEndOfTheNameDecides) {
  for (const char* name : {"table", "table.bin", "table.pt", ".safetensors.gz", ""}) {
    EXPECT_EQ(ExitCodeOf(OpenTableWriter(name).status()), kUsage) << name;
  }
  EXPECT_TRUE(OpenTableWriter(Path("a.npy")).ok());
  EXPECT_EQ(FilesInFolder(), 0U) << "an abandoned writer leaves nothing";
}

TEST_F(WritersTest, AnAbandonedFileLeavesTheOldOneWhole) {
  const std::string path = Path("old.npy");
  Put(path, "old");
  {
    auto file = OutputFile::Create(path).value();
    ASSERT_TRUE(file->Append(Bytes("new")).ok());
    EXPECT_EQ(Content(path), "old");
    EXPECT_EQ(FilesInFolder(), 2U) << "written beside its place";
  }
  EXPECT_EQ(Content(path), "old");
  EXPECT_EQ(FilesInFolder(), 1U);
}

TEST_F(WritersTest, ACommittedFileStandsAtItsPlace) {
  const std::string path = Path("old.npy");
  Put(path, "old and longer");
  auto file = OutputFile::Create(path).value();
  ASSERT_TRUE(file->Append(Bytes("new")).ok());
  ASSERT_TRUE(file->OverwriteStart(Bytes("N")).ok());
  ASSERT_TRUE(file->Append(Bytes("er")).ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Content(path), "Newer");
  EXPECT_EQ(FilesInFolder(), 1U);
}

TEST_F(WritersTest, PermissionsAreTheOldFilesOrTheUmasks) {
  const std::string path = Path("a.npy");
  const mode_t mask = umask(027);
  ASSERT_TRUE(OutputFile::Create(path).value()->Commit().ok());
  umask(mask);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
  ASSERT_EQ(chmod(path.c_str(), 0604), 0);
  ASSERT_TRUE(OutputFile::Create(path).value()->Commit().ok());
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0604U);
}

TEST_F(WritersTest, ASymbolicLinkIsFollowedNotReplaced) {
  Put(Path("target.npy"), "old");
  std::filesystem::create_symlink("target.npy", Path("link.npy"));
  auto file = OutputFile::Create(Path("link.npy")).value();
  ASSERT_TRUE(file->Append(Bytes("new")).ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link.npy")));
  EXPECT_EQ(Content(Path("target.npy")), "new");
}

TEST_F(WritersTest, WhatIsNoFileIsNotReplaced) {
  std::filesystem::create_directory(Path("folder.npy"));
  ASSERT_EQ(mkfifo(Path("pipe.npy").c_str(), 0600), 0);
  for (const std::string& path : {Path("folder.npy"), Path("pipe.npy"), Path("no/where.npy")}) {
    EXPECT_EQ(ExitCodeOf(OutputFile::Create(path).status()), kFile) << path;
  }
  EXPECT_EQ(FilesInFolder(), 2U);
}

TEST_F(WritersTest, AFullDiskIsAFileError) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const absl::Status status = WriteFully(full, Bytes("x"), "the name");
  close(full);
  EXPECT_EQ(ExitCodeOf(status), kFile);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the name: No space left"));
}

TEST(FirstRowsTest, AreCollectedAcrossPiecesAndLabelledByPosition) {
  v1::TableHeader header = MakeHeader();
  header.mutable_selection()->mutable_position_range()->set_begin(-1);
  const float values[] = {1, 2, 3, 4, 5, 6};
  FirstRows rows(header, 5);
  const auto bytes = std::as_bytes(std::span<const float>(values));
  for (size_t i = 0; i < bytes.size(); ++i) rows.Append(bytes.subspan(i, 1));
  EXPECT_EQ(rows.Text(), "  cos[position -1]: 1 2 3\n  cos[position 0]: 4 5 6\n");
}

TEST(FirstRowsTest, AListIsOneRowShownByItsEnds) {
  v1::TableHeader header = MakeHeader(v1::DTYPE_I32);
  v1::TensorInfo* tensor = header.mutable_tensors(0);
  tensor->clear_shape();
  tensor->add_shape(12);
  tensor->set_bytes(48);
  FirstRows rows(header, 1);
  const int32_t values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  rows.Append(std::as_bytes(std::span<const int32_t>(values)));
  EXPECT_EQ(rows.Text(), "  cos: 0 1 2 3 ... 8 9 10 11\n");
}

TEST(FirstRowsTest, AnEmptyTensorHasNone) {
  v1::TableHeader header = MakeHeader();
  header.mutable_tensors(0)->set_shape(0, 0);
  header.mutable_tensors(0)->set_bytes(0);
  EXPECT_EQ(FirstRows(header, 3).Text(), "");
}

}  // namespace
}  // namespace posenc::cli
