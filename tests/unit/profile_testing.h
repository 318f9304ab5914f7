// Tables by profile, for their tests.
#ifndef POSENC_TESTS_UNIT_PROFILE_TESTING_H_
#define POSENC_TESTS_UNIT_PROFILE_TESTING_H_

#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "lib/engine/engine.h"

namespace posenc {

// A file of tests/golden/configs.
inline std::string Config(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(std::string(POSENC_TEST_DATA "/golden/configs/") + file).rdbuf();
  return text.str();
}

inline v1::GetTableRequest Request(const std::string& config, const std::string& profile) {
  v1::GetTableRequest request;
  request.mutable_model()->set_config_json(config);
  request.mutable_format()->set_profile(profile);
  return request;
}

inline v1::TableHeader Header(const v1::GetTableRequest& request) {
  Engine engine;
  const auto table = engine.GetTable(request);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? (*table)->header() : v1::TableHeader();
}

}  // namespace posenc

#endif  // POSENC_TESTS_UNIT_PROFILE_TESTING_H_
