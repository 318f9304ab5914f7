// Configs as hostile or careless hands leave them: keys dropped, renamed and
// doubled, types changed, numbers made extreme, nests moved, bytes torn.
//
// Deterministic in the seed, so that a finding is a number; the fuzz target uses
// it as a custom mutator.
#ifndef POSENC_TESTS_SUPPORT_CONFIG_MUTATOR_H_
#define POSENC_TESTS_SUPPORT_CONFIG_MUTATOR_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace posenc::testing {

// A text that differs from `config` by a few mutations. One in eight is torn as
// text and most often no JSON any more; the rest are JSON when `config` is.
std::string MutateConfig(absl::string_view config, uint64_t seed);

}  // namespace posenc::testing

#endif  // POSENC_TESTS_SUPPORT_CONFIG_MUTATOR_H_
