// A finding's fix, pasted: what an author does by hand, so that it can be tried.
#ifndef POSENC_CLIENT_CLI_APPLY_FIX_H_
#define POSENC_CLIENT_CLI_APPLY_FIX_H_

#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

// The config with the members of `fix` ("key": value, ...) in the object at `pointer` (RFC 6901),
// in place of those of their names. None where there is no such object, or one of the two is no
// JSON.
std::optional<std::string> WithFix(absl::string_view config_json, absl::string_view pointer,
                                   absl::string_view fix);

// Whether pasting both fixes gives another config by the order in which they are pasted: of two
// that contradict each other only one may be offered. False where one cannot be pasted.
bool FixesContradict(absl::string_view config_json, const v1::Finding& one,
                     const v1::Finding& other);

// The text of the value at `pointer`, on one line; none where there is no such value.
std::optional<std::string> ValueAt(absl::string_view config_json, absl::string_view pointer);

// The members of `map` but those named in `kept`, which are as in `old`. Where `map` is no object
// it is null, or the default rope_type beside what is kept.
std::string MapWith(absl::string_view map, absl::string_view old,
                    std::span<const absl::string_view> kept);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_APPLY_FIX_H_
