// The dtype of a stack's table, where it follows the checkpoint's.
#ifndef POSENC_LIB_MODEL_CONFIG_PROFILE_DTYPE_H_
#define POSENC_LIB_MODEL_CONFIG_PROFILE_DTYPE_H_

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "posenc/v1/model_config.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// What the stack makes of what the config says. Where that does not decide it (float32, which some
// stacks take down, or no dtype at all) a note says what else it may be. `profile` is the
// unversioned name.
v1::DType DTypeOfCheckpoint(absl::string_view profile, const v1::ResolvedEncoding& encoding,
                            google::protobuf::RepeatedPtrField<v1::Finding>* findings);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_PROFILE_DTYPE_H_
