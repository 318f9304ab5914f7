// What a table of a model's ALiBi is not.
#ifndef POSENC_LIB_MODEL_CONFIG_ALIBI_NOTE_H_
#define POSENC_LIB_MODEL_CONFIG_ALIBI_NOTE_H_

#include "google/protobuf/repeated_field.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// Models are read as RELATIVE_CAUSAL, whose numbers stay small near the query, as serving stacks
// have it. Where the model's own code adds other numbers with the same softmax, a note (rule
// alibi-form) names their form.
void AddAlibiNote(const v1::ResolvedEncoding& encoding,
                  google::protobuf::RepeatedPtrField<v1::Finding>* findings);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ALIBI_NOTE_H_
