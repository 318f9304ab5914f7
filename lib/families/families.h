// One accessor a family, each defined in the family's own file.
#ifndef POSENC_LIB_FAMILIES_FAMILIES_H_
#define POSENC_LIB_FAMILIES_FAMILIES_H_

#include "lib/families/family.h"

namespace posenc {

const Family& SinusoidalFamily();
const Family& RopeFamily();
const Family& AlibiFamily();
const Family& T5Family();
const Family& RelativeIndexFamily();
const Family& SinusoidalGridFamily();
const Family& DetrSineFamily();
const Family& DetrLearnedFamily();
const Family& AnchorSineFamily();
const Family& RandomFourierFamily();
const Family& PerceiverFourierFamily();
const Family& MropeFamily();
const Family& AxialRopeFamily();
const Family& WindowFamily();
const Family& MaskFamily();
const Family& PositionIdsFamily();
const Family& PatchPositionsFamily();
const Family& TableResampleFamily();
const Family& GeometricCoordinatesFamily();
const Family& KerpleFamily();
const Family& SandwichFamily();
const Family& FireFamily();
const Family& RetnetDecayFamily();
const Family& XposScaleFamily();
const Family& TimeIntervalsFamily();
const Family& HstuTimeBiasFamily();
const Family& HstuPositionsFamily();

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_FAMILIES_H_
