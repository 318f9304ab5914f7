// The tool's small parts: names, numbers and JSON as people type and read them,
// and exit codes. The contract: section 6 of the design.

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/flag_names.h"
#include "client/cli/hub_cache.h"
#include "client/cli/input.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/nearest.h"
#include "client/cli/server_address.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "posenc/v1/service.pb.h"

namespace posenc::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(NamesTest, ADTypeHasTheNamesOfEveryFramework) {
  for (const char* name : {"f32", "F32", "float32", "Float32", "torch.float32", "float", "fp32"}) {
    EXPECT_EQ(ParseDType(name).value(), v1::DTYPE_F32) << name;
  }
  for (const char* name : {"f64", "float64", "double", "torch.double"}) {
    EXPECT_EQ(ParseDType(name).value(), v1::DTYPE_F64) << name;
  }
  for (const char* name : {"f16", "float16", "half", "torch.half", "torch.float16"}) {
    EXPECT_EQ(ParseDType(name).value(), v1::DTYPE_F16) << name;
  }
  for (const char* name : {"bf16", "BF16", "bfloat16", "torch.bfloat16"}) {
    EXPECT_EQ(ParseDType(name).value(), v1::DTYPE_BF16) << name;
  }
  for (const char* name : {"i32", "int32", "torch.int32", "torch.int"}) {
    EXPECT_EQ(ParseDType(name).value(), v1::DTYPE_I32) << name;
  }
  EXPECT_EQ(ParseDType("auto").value(), v1::DTYPE_UNSPECIFIED);
  EXPECT_EQ(ParseDType("").value(), v1::DTYPE_UNSPECIFIED);
}

TEST(NamesTest, ANameThatIsNoneIsWrongUsageAndQuoted) {
  for (const char* name : {"f8", "torch.", "torch.torch.f32", "f32 ", "unspecified"}) {
    EXPECT_EQ(ExitCodeOf(ParseDType(name).status()), kUsage) << name;
  }
  EXPECT_THAT(std::string(ParseDType("f8").status().message()), HasSubstr("got f8"));
  EXPECT_EQ(ExitCodeOf(ParseLayout("cosine").status()), kUsage);
  EXPECT_EQ(ExitCodeOf(ParseLayout("unspecified").status()), kUsage);
  EXPECT_EQ(ExitCodeOf(ParseArithmetic("fast").status()), kUsage);
}

TEST(NamesTest, EveryLayoutOfTheProtoHasItsName) {
  const auto* layouts = v1::Layout_descriptor();
  for (int i = 1; i < layouts->value_count(); ++i) {
    const std::string name = layouts->value(i)->name().substr(sizeof("LAYOUT_") - 1);
    std::string lower;
    for (const char c : name) lower += static_cast<char>(std::tolower(c));
    EXPECT_EQ(ParseLayout(lower).value(), layouts->value(i)->number()) << name;
  }
  EXPECT_EQ(ParseLayout("").value(), v1::LAYOUT_UNSPECIFIED);
}

TEST(NamesTest, EveryDTypeHasASafetensorsName) {
  const auto* dtypes = v1::DType_descriptor();
  for (int i = 1; i < dtypes->value_count(); ++i) {
    const auto dtype = static_cast<v1::DType>(dtypes->value(i)->number());
    EXPECT_EQ(ParseDType(SafetensorsName(dtype)).value(), dtype);
  }
}

TEST(NamesTest, OnlyARotationHasAPairing) {
  v1::EncodingSpec spec;
  spec.mutable_rope()->set_pairing(v1::PAIRING_INTERLEAVED);
  EXPECT_EQ(PairingName(spec), "interleaved");
  spec.mutable_alibi();
  EXPECT_EQ(PairingName(spec), "");
}

TEST(NamesTest, AProfileIsTakenInAnyCaseAndRefusedByTheNamesOfHelp) {
  for (const char* name : {"vllm", "vLLM", "VLLM"}) EXPECT_EQ(ParseProfile(name).value(), "vllm");
  EXPECT_EQ(ParseProfile("vLLM-1").value(), "vllm-1");
  EXPECT_EQ(ParseProfile("").value(), "");
  const absl::Status refused = ParseProfile("vllm-2").status();
  EXPECT_EQ(ExitCodeOf(refused), kUsage);
  EXPECT_EQ(refused.message(),
            "--profile: must be one of flashinfer, hf, onnx, sglang, trtllm, trtllm_cos_sin, "
            "trtllm_sin_cos, vllm, got vllm-2");
}

TEST(NamesTest, EveryChoiceIsTakenInAnyCase) {
  EXPECT_EQ(ParseLayout("Cos_Sin").value(), v1::LAYOUT_COS_SIN);
  EXPECT_EQ(ParseArithmetic("Float32").value(), v1::ARITHMETIC_FLOAT32);
  EXPECT_EQ(ParseCompat("Latest").value(), v1::COMPAT_LATEST);
}

// gRPC connected to port 34463 for 99999, and to 443 for a host alone.
TEST(ServerAddressTest, APortIsNotWrappedAndNotGuessed) {
  for (const char* address : {"127.0.0.1:1", "localhost:50051", "posenc.example:65535",
                              "[::1]:50051", "unix:socket", "unix:///run/posenc.sock"}) {
    EXPECT_TRUE(CheckServerAddress(address).ok()) << address;
  }
  for (const char* address :
       {"127.0.0.1:99999", "127.0.0.1:65536", "127.0.0.1:4294967297", "127.0.0.1:0", "localhost",
        "localhost:", ":50051", "localhost:+1", "localhost: 1", "localhost:1e3", "::1:50051",
        "[]:1", "[::1]", "[localhost:1", "[localhost]:1", "http://localhost:50051",
        "https://localhost", "unix:", "/run/socket"}) {
    const absl::Status status = CheckServerAddress(address);
    EXPECT_EQ(ExitCodeOf(status), kUsage) << address;
    EXPECT_EQ(status.message(),
              absl::StrCat("--server: must be HOST:PORT with a port of 1 to 65535, or unix:PATH, "
                           "got ",
                           address));
  }
}

// What the library calls attention_grid is typed as --query-length and --key-length.
TEST(FlagNamesTest, AMessageOfTheLibraryHasTheFlagsOfItsFields) {
  EXPECT_EQ(FlagsOf("selection: is required: an attention_grid"),
            " (flags: --query-length, --key-length)");
  EXPECT_EQ(FlagsOf("selection: is required: a position_range or position_ids"),
            " (flags: --positions, --position-ids)");
  EXPECT_EQ(FlagsOf("selection.position_range.end: must be 5; pass sequence_length, which"),
            " (flags: --positions, --sequence-length)");
  EXPECT_EQ(FlagsOf("selection.attention_grid.query_offset: must be in [0, 5], got 6"),
            " (flag: --query-offset)");
  EXPECT_EQ(FlagsOf("selection.position_ids.ids[3]: must be in"), " (flag: --position-ids)");
  EXPECT_EQ(FlagsOf("format.max_model_len: must be at least 1, got 0"), " (flag: --rows)");
  EXPECT_EQ(FlagsOf("tower: name one by tower and layer_type."), " (flags: --tower, --layer-type)");
}

TEST(FlagNamesTest, WhatNoFlagFillsInHasNone) {
  for (const char* message :
       {"", "rope.rotary_dim: must be even, got 65",
        "rope.longrope.sequence_length: must be in [1, 5], got 6",     // of a --spec
        "position_ids.offset: this rule has none",                     // a family of this name
        "config_json/rope_scaling/sequence_length: must be a number",  // a key of the file
        "a tower without points, a profile, the layout"}) {            // English
    EXPECT_EQ(FlagsOf(message), "") << message;
  }
}

TEST(NearestTest, AFlagOfOneSlipIsFoundAndAnotherWordIsNot) {
  const std::vector<std::string> flags = {"--output", "--layout", "--dtype", "--server"};
  EXPECT_EQ(Nearest("--ouput", flags), "--output");
  EXPECT_EQ(Nearest("--dtpye", flags), "--dtype");
  EXPECT_EQ(Nearest("--servers", flags), "--server");
  EXPECT_EQ(Nearest("--layout", flags), "--layout");
  EXPECT_EQ(Nearest("--timeout-seconds", flags), "");
  EXPECT_EQ(Nearest("x", flags), "");
  EXPECT_EQ(Nearest("", flags), "");
  EXPECT_EQ(Nearest(std::string(1 << 20, '-'), flags), "");
}

TEST(ExitCodeTest, FollowsTheContract) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::OutOfRangeError("")), 1);
  EXPECT_EQ(ExitCodeOf(UsageError("")), 2);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 3);
  EXPECT_EQ(ExitCodeOf(FileError("a", ENOENT)), 4);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::UnknownError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("the server's own")), 5);
}

TEST(JsonTest, FieldsKeepTheirProtoNamesAnd64BitIntegersAreStrings) {
  v1::DescribeTableResponse response;
  response.mutable_header()->set_total_bytes(~uint64_t{0});
  response.add_inv_freq(1.0);
  const std::string json = PrettyJson(response);
  EXPECT_THAT(json, HasSubstr("\"total_bytes\": \"18446744073709551615\""));
  EXPECT_THAT(json, HasSubstr("\"inv_freq\""));
  EXPECT_THAT(json, Not(HasSubstr("invFreq")));
  EXPECT_THAT(json, HasSubstr("\"slopes\": []")) << "what is empty is there";
}

// Doubles at the hard places, and 10,000 whose bits follow from their index.
TEST(JsonTest, DoublesReadBackBitForBit) {
  v1::DescribeTableResponse response;
  for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 1e22, 1e23,
                             9007199254740993.0, 2.2250738585072014e-308}) {
    response.add_inv_freq(value);
  }
  uint64_t state = 1;
  for (int i = 0; i < 10000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    double value = 0;
    std::memcpy(&value, &state, sizeof(value));
    if (std::isfinite(value)) response.add_inv_freq(value);
  }
  v1::DescribeTableResponse back;
  ASSERT_TRUE(FromJson(PrettyJson(response), "json", &back).ok());
  ASSERT_EQ(back.inv_freq_size(), response.inv_freq_size());
  for (int i = 0; i < back.inv_freq_size(); ++i) {
    EXPECT_EQ(std::memcmp(&back.inv_freq().at(i), &response.inv_freq().at(i), sizeof(double)), 0)
        << response.inv_freq(i);
    EXPECT_EQ(std::strtod(ExactDouble(response.inv_freq(i)).c_str(), nullptr),
              response.inv_freq(i));
  }
}

TEST(JsonTest, ExactDoubleIsShort) {
  EXPECT_EQ(ExactDouble(1), "1");
  EXPECT_EQ(ExactDouble(0.1), "0.1");
  EXPECT_EQ(ExactDouble(1.2079441541679836), "1.2079441541679836");
}

TEST(JsonTest, StringsAreEscaped) {
  EXPECT_EQ(JsonString("a\"b\\c\n\x01 \xc3\xa9"), "\"a\\\"b\\\\c\\u000a\\u0001 \xc3\xa9\"");
}

TEST(JsonTest, TextThatIsNoMessageIsRefused) {
  v1::EncodingSpec spec;
  for (const char* json : {"", "{", "{\"rope\": 1}", "{\"rope\": {\"head_dims\": 64}}",
                           "{\"rope\": {\"head_dim\": \"x\"}}", "{} trailing"}) {
    const absl::Status status = FromJson(json, "spec", &spec);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << json;
    EXPECT_THAT(std::string(status.message()), HasSubstr("spec: ")) << json;
  }
}

TEST(JsonTest, NestingIsRefusedNotFollowed) {
  v1::EncodingSpec spec;
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"rope\":";
  EXPECT_TRUE(absl::IsInvalidArgument(FromJson(deep, "spec", &spec)));
}

TEST(InputTest, WhatCannotBeReadIsAFileError) {
  for (const char* path : {"/nonexistent/config.json", "/", "/proc/self/mem"}) {
    const absl::Status status = ReadModel(path).status();
    EXPECT_EQ(ExitCodeOf(status), kFile) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

TEST(InputTest, WhatIsTooLargeIsRefused) {
  const absl::Status status = ReadModel("/dev/zero").status();
  EXPECT_EQ(ExitCodeOf(status), kRefused);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/zero: must be at most"));
}

TEST(InputTest, AnOrgAndNameIsFoundInTheHubCacheOffline) {
  const std::filesystem::path cache =
      std::filesystem::path(::testing::TempDir()) / "posenc-hub-cache";
  const std::filesystem::path model = cache / "models--org--name-1.5";
  std::filesystem::create_directories(model / "refs");
  std::filesystem::create_directories(model / "snapshots/abc123");
  std::ofstream(model / "refs/main") << "abc123";
  std::ofstream(model / "snapshots/abc123/config.json") << "{}";
  setenv("HF_HUB_CACHE", cache.c_str(), 1);
  EXPECT_EQ(ReadModel("org/name-1.5").value(), "{}");
  const absl::Status missing = ReadModel("org/other").status();
  EXPECT_EQ(ExitCodeOf(missing), kFile);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("models--org--other"));
  unsetenv("HF_HUB_CACHE");
  setenv("HUGGINGFACE_HUB_CACHE", cache.c_str(), 1);
  EXPECT_EQ(ReadModel("org/name-1.5").value(), "{}") << "the older name";
  unsetenv("HUGGINGFACE_HUB_CACHE");
  std::filesystem::remove_all(cache);
  EXPECT_FALSE(IsHubName("a/b/c"));
  EXPECT_FALSE(IsHubName("../b"));
  EXPECT_FALSE(IsHubName("name"));
}

TEST(InputTest, TheHubCacheIsInTheFolderOfCachesThatTheEnvironmentNames) {
  const std::filesystem::path caches = std::filesystem::path(::testing::TempDir()) / "posenc-xdg";
  const std::filesystem::path model = caches / "huggingface/hub/models--org--name";
  std::filesystem::create_directories(model / "refs");
  std::filesystem::create_directories(model / "snapshots/abc123");
  std::ofstream(model / "refs/main") << "abc123";
  std::ofstream(model / "snapshots/abc123/config.json") << "{}";
  setenv("XDG_CACHE_HOME", caches.c_str(), 1);
  EXPECT_EQ(ReadModel("org/name").value(), "{}");
  unsetenv("XDG_CACHE_HOME");
  setenv("HF_HOME", (caches / "huggingface").c_str(), 1);
  EXPECT_EQ(ReadModel("org/name").value(), "{}");
  unsetenv("HF_HOME");
  std::filesystem::remove_all(caches);
}

TEST(InputTest, ASpecIsTextWhenItBeginsWithABrace) {
  EXPECT_EQ(ReadSpec(" \n{}").value(), " \n{}");
  EXPECT_EQ(ExitCodeOf(ReadSpec("").status()), kFile);
}

}  // namespace
}  // namespace posenc::cli
