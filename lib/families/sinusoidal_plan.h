// The rows of a sinusoidal table.
#ifndef POSENC_LIB_FAMILIES_SINUSOIDAL_PLAN_H_
#define POSENC_LIB_FAMILIES_SINUSOIDAL_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/families/family.h"
#include "lib/numeric/angle.h"
#include "lib/numeric/rotation.h"
#include "lib/numeric/wide_float.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

class SinusoidalPlan final : public Plan {
 public:
  // REQUIRES: a canonical spec.
  explicit SinusoidalPlan(const v1::SinusoidalSpec& spec);

  size_t bytes() const override;
  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override;
  void FillCold(const TableShape& shape, std::span<const TensorPart> parts) const override;
  void Describe(v1::DescribeTableResponse* response) const override;

 private:
  void FillPart(const TableShape& shape, const TensorPart& part, bool cold) const;

  // Rows [first, first + rows) of the selection: as a rotation's, or one by one.
  template <typename Element>
  void FillRows(const v1::Selection& selection, int64_t begin, std::span<std::byte> out,
                bool cold) const;
  template <typename Element>
  void FillRotated(const v1::Selection& selection, int64_t first, int64_t rows, Element* out,
                   bool cold) const;
  template <typename Element>
  void FillOneByOne(const v1::Selection& selection, int64_t first, int64_t rows,
                    Element* out) const;

  // `count` rows of x, x + step, x + 2 step ..., where step is 1 or -1.
  template <typename Element>
  void FillRun(int64_t x, int64_t step, int64_t count, Element* out, bool cold) const;

  // How the kernel writes whole rows of ascending x; none where it cannot.
  template <typename Element>
  std::optional<RotationRows<Element>> KernelRows(Element* out) const;

  // Sines and cosines [SinusoidalPairs] of the real or integer x that a row is about.
  template <typename Element>
  void FillFloat32(double x, Element* sin, Element* cos) const;
  template <typename Element>
  void FillExact(double x, const std::vector<ExactFrequency>& frequencies, Element* sin,
                 Element* cos) const;

  // Puts a row together in the layout.
  template <typename Element>
  void Assemble(const Element* sin, const Element* cos, Element* row) const;

  // Whether a value is a sinusoid, or x * frequency + phase itself.
  bool IsLinear(size_t k) const;

  v1::SinusoidalSpec spec_;
  std::vector<float> frequencies32_;  // FLOAT32: radians per position
  std::vector<WideFloat> exact_;      // EXACT: the same, times position_scale
  // Rows of integer positions, where nothing but a frequency stands between a position
  // and its angle.
  std::optional<Rotation> rotation_;
};

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_SINUSOIDAL_PLAN_H_
