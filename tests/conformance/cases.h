// The tables that every way to posenc must give byte for byte.
#ifndef POSENC_TESTS_CONFORMANCE_CASES_H_
#define POSENC_TESTS_CONFORMANCE_CASES_H_

#include <string>
#include <vector>

#include "posenc/v1/table.pb.h"

namespace posenc::testing {

struct Case {
  std::string name;
  v1::GetTableRequest request;
};

// Every family, layout and dtype at least once, sizes from nothing to several pages.
const std::vector<Case>& Cases();

}  // namespace posenc::testing

#endif  // POSENC_TESTS_CONFORMANCE_CASES_H_
