// Serving stacks as data: which rows, layout, dtype and tensor names each gives
// the RoPE table that it builds from a config, and which keys it does not heed.
//
// A profile fills in what a request leaves unset. The values are the
// checkpoint's meaning, not the stack's reading of it: where a stack would
// ignore a key, the table heeds it and a finding says so. The length of a table
// that depends on it is the stack's.
// Facts: what each stack's code builds, as of ProfileSource.
#ifndef POSENC_LIB_MODEL_CONFIG_PROFILE_H_
#define POSENC_LIB_MODEL_CONFIG_PROFILE_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/model_config.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

struct Profile;  // a row of the table

// "vllm", or with the version of its rules "vllm-1". Refuses other names with
// the list of those there are. The row lives for ever.
absl::StatusOr<const Profile*> FindProfile(absl::string_view name);

// All versioned names, in order.
std::span<const absl::string_view> ProfileNames();

// Which code of the stack a versioned name follows: its repository, commit or version, and day.
// Empty for a name that is not known here: a newer server's.
absl::string_view ProfileSource(absl::string_view versioned);

// A request for a table, as far as a profile decides it.
struct ProfiledRequest {
  // Null for a bare spec: then there are no rows to fill in.
  const v1::ResolvedEncoding* encoding;
  v1::EncodingSpec* spec;
  v1::Selection* selection;
  v1::TensorFormat* format;
  google::protobuf::RepeatedPtrField<v1::Finding>* findings;
};

// Fills in what is unset, and the versioned name, and adds a finding for each key of the
// config that the stack would ignore or read otherwise. Null where the format names no
// profile. Refuses by name what the stack has no such table of (no RoPE, a grid's, a type that it
// does not know), and max_model_len without a profile.
absl::StatusOr<const Profile*> ApplyProfile(const ProfiledRequest& request);

// The stack's names for the tensors of a table, in their order; empty where they are the
// layout's own.
std::span<const absl::string_view> TensorNames(const Profile& profile, const v1::EncodingSpec& spec,
                                               v1::Layout layout);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_PROFILE_H_
