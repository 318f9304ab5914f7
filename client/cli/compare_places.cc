#include "client/cli/compare_places.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace posenc::cli {
namespace {

bool SamePart(const v1::ResolvedEncoding& a, const v1::ResolvedEncoding& b) {
  return a.tower() == b.tower() && a.layer_type() == b.layer_type();
}

}  // namespace

// What has several encodings in one part (MPNet: learned rows and buckets) is told apart by kind;
// one of another kind is the like of what is left over.
EncodingPairs PairEncodings(const v1::ResolveModelConfigResponse& base,
                            const v1::ResolveModelConfigResponse& model) {
  EncodingPairs pairs;
  for (const v1::ResolvedEncoding& encoding : base.encodings()) {
    pairs.of_base.emplace_back(&encoding, nullptr);
  }
  for (const v1::ResolvedEncoding& encoding : model.encodings()) pairs.added.push_back(&encoding);
  for (const bool same_kind : {true, false}) {
    for (auto& [of_base, of_model] : pairs.of_base) {
      if (of_model != nullptr) continue;
      const v1::ResolvedEncoding& wanted = *of_base;
      const auto like = std::find_if(
          pairs.added.begin(), pairs.added.end(), [&](const v1::ResolvedEncoding* encoding) {
            return SamePart(*encoding, wanted) && (!same_kind || encoding->kind() == wanted.kind());
          });
      if (like == pairs.added.end()) continue;
      of_model = *like;
      pairs.added.erase(like);
    }
  }
  return pairs;
}

bool SetPlace(const v1::ResolvedEncoding& encoding, absl::string_view fact, v1::Finding* finding) {
  const v1::FactPlace* place = FindPlace(encoding, fact);
  if (place == nullptr) return false;
  PointAt(*place, finding);
  return true;
}

absl::string_view SwitchedName(const v1::ResolvedEncoding& encoding) {
  return encoding.layer_type() == "all" ? encoding.kind() : encoding.layer_type();
}

void SetSwitchPlace(const v1::ResolvedEncoding& encoding, absl::string_view wanted,
                    v1::Finding* finding) {
  if (SetPlace(encoding, absl::StrCat("with:", wanted), finding)) return;
  SetPlace(encoding, "kind", finding);
}

void SetMissingPlace(const v1::ResolveModelConfigResponse& model,
                     const v1::ResolvedEncoding& of_base, v1::Finding* finding) {
  for (const v1::ResolvedEncoding& encoding : model.encodings()) {
    if (encoding.tower() != of_base.tower()) continue;
    if (SetPlace(encoding, absl::StrCat("with:", SwitchedName(of_base)), finding)) return;
    SetPlace(encoding, of_base.layer_type() == "all" ? "kind" : "layers", finding);
    return;
  }
  // A tower of its own has a config of its own, which would stand where the base's does.
  const v1::FactPlace* place = FindPlace(of_base, "kind");
  const std::string pointer = place == nullptr ? "" : place->pointer();
  const size_t end = pointer.rfind('/');
  if (end != std::string::npos && end > 0) {
    finding->set_pointer(pointer.substr(0, end));
    finding->set_line(1);  // the object that lacks it is the file
    finding->set_column(1);
  } else if (!model.encodings().empty()) {
    SetPlace(model.encodings(0), "kind", finding);
  }
}

}  // namespace posenc::cli
