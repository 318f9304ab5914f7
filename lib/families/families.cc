// Which families there are: one exhaustive switch, and the entry to all of them.
#include "lib/families/families.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/canonical_key.h"
#include "lib/base/status.h"
#include "lib/families/family.h"

namespace posenc {

CanonicalSpec::CanonicalSpec(v1::EncodingSpec proto)
    : proto_(std::move(proto)), key_(CanonicalKey(proto_)) {}

int64_t Tensor::size() const {
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;
  return elements;
}

const Family& FamilyOf(const v1::EncodingSpec& spec) {
  switch (spec.family_case()) {
    case v1::EncodingSpec::kSinusoidal:
      return SinusoidalFamily();
    case v1::EncodingSpec::kRope:
      return RopeFamily();
    case v1::EncodingSpec::kAlibi:
      return AlibiFamily();
    case v1::EncodingSpec::kT5:
      return T5Family();
    case v1::EncodingSpec::kRelativeIndex:
      return RelativeIndexFamily();
    case v1::EncodingSpec::kWindow:
      return WindowFamily();
    case v1::EncodingSpec::kMask:
      return MaskFamily();
    case v1::EncodingSpec::kPositionIds:
      return PositionIdsFamily();
    case v1::EncodingSpec::kPatchPositions:
      return PatchPositionsFamily();
    case v1::EncodingSpec::kTableResample:
      return TableResampleFamily();
    case v1::EncodingSpec::kGeometricCoordinates:
      return GeometricCoordinatesFamily();
    case v1::EncodingSpec::kKerple:
      return KerpleFamily();
    case v1::EncodingSpec::kSandwich:
      return SandwichFamily();
    case v1::EncodingSpec::kFire:
      return FireFamily();
    case v1::EncodingSpec::kRetnetDecay:
      return RetnetDecayFamily();
    case v1::EncodingSpec::kXposScale:
      return XposScaleFamily();
    case v1::EncodingSpec::kTimeIntervals:
      return TimeIntervalsFamily();
    case v1::EncodingSpec::kHstuTimeBias:
      return HstuTimeBiasFamily();
    case v1::EncodingSpec::kHstuPositions:
      return HstuPositionsFamily();
    case v1::EncodingSpec::kSinusoidalGrid:
      return SinusoidalGridFamily();
    case v1::EncodingSpec::kDetrSine:
      return DetrSineFamily();
    case v1::EncodingSpec::kDetrLearned:
      return DetrLearnedFamily();
    case v1::EncodingSpec::kAnchorSine:
      return AnchorSineFamily();
    case v1::EncodingSpec::kRandomFourier:
      return RandomFourierFamily();
    case v1::EncodingSpec::kPerceiverFourier:
      return PerceiverFourierFamily();
    case v1::EncodingSpec::kMrope:
      return MropeFamily();
    case v1::EncodingSpec::kAxialRope:
      return AxialRopeFamily();
    case v1::EncodingSpec::FAMILY_NOT_SET:
      break;
  }
  std::abort();  // excluded by REQUIRES; Canonicalize refuses it
}

std::span<const Family* const> AllFamilies() {
  // One line a family:
  // clang-format off
  static const Family* const kFamilies[] = {
      &SinusoidalFamily(),
      &RopeFamily(),
      &AlibiFamily(),
      &T5Family(),
      &RelativeIndexFamily(),
      &WindowFamily(),
      &MaskFamily(),
      &PositionIdsFamily(),
      &PatchPositionsFamily(),
      &TableResampleFamily(),
      &GeometricCoordinatesFamily(),
      &KerpleFamily(),
      &SandwichFamily(),
      &FireFamily(),
      &RetnetDecayFamily(),
      &XposScaleFamily(),
      &TimeIntervalsFamily(),
      &HstuTimeBiasFamily(),
      &HstuPositionsFamily(),
      &SinusoidalGridFamily(),
      &DetrSineFamily(),
      &DetrLearnedFamily(),
      &AnchorSineFamily(),
      &RandomFourierFamily(),
      &PerceiverFourierFamily(),
      &MropeFamily(),
      &AxialRopeFamily(),
  };
  // clang-format on
  return kFamilies;
}

absl::StatusOr<CanonicalSpec> Canonicalize(v1::EncodingSpec spec) {
  if (spec.family_case() == v1::EncodingSpec::FAMILY_NOT_SET) {
    return FieldError("spec", absl::StrCat("one family is required: ",
                                           absl::StrJoin(AllFamilies(), ", ",
                                                         [](std::string* out, const Family* f) {
                                                           absl::StrAppend(out, f->name());
                                                         })));
  }
  spec.DiscardUnknownFields();
  RETURN_IF_ERROR(FamilyOf(spec).Canonicalize(&spec));
  return CanonicalSpec(std::move(spec));
}

}  // namespace posenc
