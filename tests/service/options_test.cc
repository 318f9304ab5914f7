// Flags, and their environment twins.
#include "server/options.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace posenc::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ParsedOptions Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "posenc-server");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data());
}

class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedEnv() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(OptionsTest, DefaultsListenOnLoopback) {
  const ParsedOptions parsed = Parse({});
  ASSERT_TRUE(parsed.options.has_value()) << parsed.text;
  EXPECT_THAT(parsed.options->server.listen, ElementsAre("127.0.0.1:50051"));
  EXPECT_TRUE(parsed.options->server.reflection);
  EXPECT_FALSE(parsed.options->server.share_memory);
  EXPECT_EQ(parsed.options->drain_grace, std::chrono::seconds(30));
}

TEST(OptionsTest, ListenMayBeRepeated) {
  const ParsedOptions parsed = Parse({"--listen", "127.0.0.1:0", "--listen=unix:/run/p.sock"});
  ASSERT_TRUE(parsed.options.has_value()) << parsed.text;
  EXPECT_THAT(parsed.options->server.listen, ElementsAre("127.0.0.1:0", "unix:/run/p.sock"));
}

TEST(OptionsTest, EveryFlagReachesItsOption) {
  const ParsedOptions parsed = Parse(
      {"--max-table-bytes=3GiB", "--max-request-bytes=64KiB", "--max-position-ids=5",
       "--max-queue=6", "--max-concurrent-streams=7", "--compute-threads=8", "--page-cache-bytes=0",
       "--plan-cache-bytes=9", "--chunk-bytes=128KiB", "--stall-timeout=1.5", "--drain-grace=0",
       "--share-memory", "--share-memory-bytes=2GiB", "--reflection=off", "--log-format=json",
       "--log-level=error"});
  ASSERT_TRUE(parsed.options.has_value()) << parsed.text;
  const ServerOptions& server = parsed.options->server;
  EXPECT_EQ(server.engine.max_table_bytes, uint64_t{3} << 30);
  EXPECT_EQ(server.max_request_bytes, 65536u);
  EXPECT_EQ(server.engine.max_position_ids, 5u);
  EXPECT_EQ(server.max_queue, 6u);
  EXPECT_EQ(server.max_concurrent_streams, 7u);
  EXPECT_EQ(server.compute_threads, 8u);
  EXPECT_EQ(server.engine.page_cache_bytes, 0u);
  EXPECT_EQ(server.engine.plan_cache_bytes, 9u);
  EXPECT_EQ(server.engine.page_bytes, 131072u);
  EXPECT_EQ(server.stall_timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(parsed.options->drain_grace, std::chrono::seconds(0));
  EXPECT_FALSE(server.reflection);
  EXPECT_TRUE(server.share_memory);
  EXPECT_EQ(server.share_memory_bytes, uint64_t{2} << 30);
  EXPECT_EQ(parsed.options->log_format, LogFormat::kJson);
  EXPECT_EQ(parsed.options->log_level, LogLevel::kError);
}

TEST(OptionsTest, TheEnvironmentSetsWhatNoFlagSets) {
  const ScopedEnv listen("POSENC_LISTEN", "127.0.0.1:7,unix:/run/p.sock");
  const ScopedEnv table("POSENC_MAX_TABLE_BYTES", "1MiB");
  const ScopedEnv format("POSENC_LOG_FORMAT", "json");
  const ParsedOptions parsed = Parse({});
  ASSERT_TRUE(parsed.options.has_value()) << parsed.text;
  EXPECT_THAT(parsed.options->server.listen, ElementsAre("127.0.0.1:7", "unix:/run/p.sock"));
  EXPECT_EQ(parsed.options->server.engine.max_table_bytes, 1u << 20);
  EXPECT_EQ(parsed.options->log_format, LogFormat::kJson);
}

TEST(OptionsTest, ASwitchHasATwinTooAndCanBeSwitchedOff) {
  const ScopedEnv share("POSENC_SHARE_MEMORY", "on");
  EXPECT_TRUE(Parse({}).options->server.share_memory);
  EXPECT_FALSE(Parse({"--share-memory=off"}).options->server.share_memory);
}

TEST(OptionsTest, AFlagBeatsTheEnvironment) {
  const ScopedEnv listen("POSENC_LISTEN", "127.0.0.1:7");
  const ScopedEnv queue("POSENC_MAX_QUEUE", "7");
  const ScopedEnv reflection("POSENC_REFLECTION", "on");
  const ParsedOptions parsed = Parse({"--listen=127.0.0.1:8", "--max-queue=8", "--reflection=off"});
  ASSERT_TRUE(parsed.options.has_value()) << parsed.text;
  EXPECT_THAT(parsed.options->server.listen, ElementsAre("127.0.0.1:8"));
  EXPECT_EQ(parsed.options->server.max_queue, 8u);
  EXPECT_FALSE(parsed.options->server.reflection);
}

TEST(OptionsTest, WrongUsageNamesTheFlagAndExitsWith2) {
  for (const auto& [argument, named] : std::vector<std::pair<const char*, const char*>>{
           {"--max-queue=many", "--max-queue"},
           {"--max-queue=-1", "--max-queue"},
           {"--chunk-bytes=1", "--chunk-bytes"},
           {"--chunk-bytes=1GiB", "--chunk-bytes"},
           {"--stall-timeout=-1", "--stall-timeout"},
           {"--stall-timeout=nan", "--stall-timeout"},
           {"--log-format=xml", "--log-format"},
           {"--max-table-bytes=99999999999999999999", "--max-table-bytes"},
           {"--no-such-flag", "--no-such-flag"}}) {
    SCOPED_TRACE(argument);
    const ParsedOptions parsed = Parse({argument});
    EXPECT_FALSE(parsed.options.has_value());
    EXPECT_EQ(parsed.exit_code, 2);
    EXPECT_THAT(parsed.text, HasSubstr(named));
  }
}

TEST(OptionsTest, WhatIsNotExpectedIsShownAsItWasTyped) {
  const ParsedOptions parsed = Parse({"--lisen", "127.0.0.1:0"});
  EXPECT_EQ(parsed.exit_code, 2);
  EXPECT_THAT(parsed.text, HasSubstr("not expected: --lisen 127.0.0.1:0\n"));
}

TEST(OptionsTest, AWrongEnvironmentIsWrongUsageToo) {
  const ScopedEnv queue("POSENC_MAX_QUEUE", "many");
  const ParsedOptions parsed = Parse({});
  EXPECT_EQ(parsed.exit_code, 2);
  EXPECT_THAT(parsed.text, HasSubstr("max-queue"));
}

TEST(OptionsTest, HelpAndVersionExitWith0) {
  EXPECT_EQ(Parse({"--help"}).exit_code, 0);
  EXPECT_THAT(Parse({"--help"}).text, HasSubstr("POSENC_MAX_QUEUE"));
  EXPECT_EQ(Parse({"--version"}).exit_code, 0);
  EXPECT_THAT(Parse({"--version"}).text, ::testing::MatchesRegex("posenc-server [0-9.]+\n"));
}

}  // namespace
}  // namespace posenc::server
