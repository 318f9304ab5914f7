// `posenc resolve --short`: a model's encodings for people.
#ifndef POSENC_CLIENT_CLI_ENCODING_LINES_H_
#define POSENC_CLIENT_CLI_ENCODING_LINES_H_

#include <string>

#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

// Two lines an encoding: where it is and how many rows it has, then what it is made of, field by
// field; then a line a finding.
std::string EncodingLines(const v1::ResolveModelConfigResponse& response);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_ENCODING_LINES_H_
