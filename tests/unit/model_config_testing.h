// What the tests of lib/model_config share.
#ifndef POSENC_TESTS_UNIT_MODEL_CONFIG_TESTING_H_
#define POSENC_TESTS_UNIT_MODEL_CONFIG_TESTING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::testing {

// Of a config text.
absl::StatusOr<v1::ResolveModelConfigResponse> Resolve(absl::string_view config_json);

// Of one that resolves, to specs that canonicalize; the test fails when it does not.
v1::ResolveModelConfigResponse Resolved(absl::string_view config_json);

// Of one that resolves as that version of transformers reads it.
v1::ResolveModelConfigResponse ResolvedAs(absl::string_view config_json, v1::Compat compat);

// Of a config text, its status's message; "" when it resolved.
std::string Refusal(absl::string_view config_json);

// The only encoding of the same.
v1::ResolvedEncoding TheEncoding(absl::string_view config_json);

// {"model_type": model_type, <a 4096 x 32 model of 8192 positions>, more}.
std::string ModelWith(absl::string_view model_type, absl::string_view more);

// A composite of a text model and `config`, nested under `part`.
std::string CompositeWith(absl::string_view model_type, absl::string_view part,
                          absl::string_view config);

// A file of tests/golden/configs.
std::string ReadConfig(absl::string_view name);

// The encodings of one tower of a composite.
std::vector<v1::ResolvedEncoding> TowerOf(const v1::ResolveModelConfigResponse& response,
                                          absl::string_view tower);

// The finding of that rule; null when there is none.
const v1::Finding* FindingOf(const v1::ResolveModelConfigResponse& response,
                             absl::string_view rule);

// Its message; "" when there is none.
std::string MessageOf(absl::string_view rule, const v1::ResolveModelConfigResponse& response);

}  // namespace posenc::testing

#endif  // POSENC_TESTS_UNIT_MODEL_CONFIG_TESTING_H_
