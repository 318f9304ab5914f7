// What the checks of relative.jsonl share; its runner is relative_golden_test.cc.
#ifndef POSENC_TESTS_GOLDEN_RELATIVE_GOLDEN_H_
#define POSENC_TESTS_GOLDEN_RELATIVE_GOLDEN_H_

#include <cstdint>
#include <map>
#include <string>

#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/table.pb.h"
#include "tests/support/golden.h"

namespace posenc::testing {

// By encoding: intervals of time, and functions of distance.
const std::map<std::string, golden::CheckLine>& IntervalChecks();

int64_t Int(const golden::Json& params, const char* name);

// The first tensor of the table against the line.
void Check(const golden::Json& line, const v1::EncodingSpec& spec, const v1::Selection& selection,
           const std::string& format = "");
void Check(const golden::Json& line, const std::string& spec, const v1::Selection& selection,
           const std::string& format = "");

// Members of the params: a table as a request carries it; the grid.
v1::FloatTable TableOf(const golden::Json& params, const char* shape, const char* hex);
v1::Selection GridOf(const golden::Json& params);

}  // namespace posenc::testing

#endif  // POSENC_TESTS_GOLDEN_RELATIVE_GOLDEN_H_
