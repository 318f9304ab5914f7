// What a serving stack does not heed of a config, or reads in its own way: data, a row a key.
#ifndef POSENC_LIB_MODEL_CONFIG_PROFILE_FINDINGS_H_
#define POSENC_LIB_MODEL_CONFIG_PROFILE_FINDINGS_H_

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "posenc/v1/model_config.pb.h"
#include "posenc/v1/rope.pb.h"

namespace posenc {

// A note for each such key of the encoding, with its place in the file. `profile` is the
// unversioned name, `rope` the table's, for a length.
void AddProfileFindings(absl::string_view profile, const v1::ResolvedEncoding& encoding,
                        const v1::RopeSpec& rope,
                        google::protobuf::RepeatedPtrField<v1::Finding>* findings);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_PROFILE_FINDINGS_H_
