#include "lib/families/axial_coordinates.h"

#include "lib/families/linspace.h"

namespace posenc {
namespace {

WideFloat Quotient(int64_t a, int64_t b) {
  return WideFloat::FromInt(a).DividedBy(static_cast<uint64_t>(b));
}

// Frames are counted, unless the rule makes every axis a unit interval.
v1::AxialCoordinateRule RuleOn(const v1::AxialRopeSpec& spec, v1::GridAxis axis) {
  const bool unit = spec.coordinate_rule() == v1::AXIAL_COORDINATE_RULE_UNIT_CENTERED ||
                    spec.coordinate_rule() == v1::AXIAL_COORDINATE_RULE_UNIT;
  return axis == v1::GRID_AXIS_T && !unit ? v1::AXIAL_COORDINATE_RULE_INDEX
                                          : spec.coordinate_rule();
}

float Float32ByRule(v1::AxialCoordinateRule rule, const v1::AxialRopeAxis& axis, int64_t i,
                    int64_t n) {
  const auto index = static_cast<float>(i);
  const auto length = static_cast<float>(n);
  switch (rule) {
    case v1::AXIAL_COORDINATE_RULE_CENTERED:
      return static_cast<float>(i - (n - n / 2));
    case v1::AXIAL_COORDINATE_RULE_UNIT_CENTERED:
      return 2 * ((index + 0.5f) / length) - 1;
    case v1::AXIAL_COORDINATE_RULE_UNIT:
      return Linspace(-1, 1, n, i);
    case v1::AXIAL_COORDINATE_RULE_RESCALED:
      return index / length * static_cast<float>(axis.stop());
    case v1::AXIAL_COORDINATE_RULE_REGION:
      // stop (n-1) / n is a Python float; the row is float32.
      return Linspace(
          static_cast<float>(axis.start()),
          static_cast<float>(axis.stop() * static_cast<double>(n - 1) / static_cast<double>(n)), n,
          i);
    default:  // INDEX
      return index;
  }
}

WideFloat ExactByRule(v1::AxialCoordinateRule rule, const v1::AxialRopeAxis& axis, int64_t i,
                      int64_t n) {
  switch (rule) {
    case v1::AXIAL_COORDINATE_RULE_CENTERED:
      return WideFloat::FromInt(i - (n - n / 2));
    case v1::AXIAL_COORDINATE_RULE_UNIT_CENTERED:
      return Quotient(2 * i + 1 - n, n);
    case v1::AXIAL_COORDINATE_RULE_UNIT:
      return ExactLinspace(WideFloat::FromInt(-1), WideFloat::FromInt(1), n, i);
    case v1::AXIAL_COORDINATE_RULE_RESCALED:
      return Quotient(i, n) * WideFloat::From(axis.stop());
    case v1::AXIAL_COORDINATE_RULE_REGION:
      return ExactLinspace(WideFloat::From(axis.start()),
                           WideFloat::From(axis.stop()) * Quotient(n - 1, n), n, i);
    default:  // INDEX
      return WideFloat::FromInt(i);
  }
}

WideFloat Moved(const v1::AxialRopeSpec& spec, float coordinate) {
  if (spec.coordinate_offset() != 0) coordinate += static_cast<float>(spec.coordinate_offset());
  return WideFloat::From(
      static_cast<double>(coordinate * static_cast<float>(spec.coordinate_scale())));
}

WideFloat Moved(const v1::AxialRopeSpec& spec, const WideFloat& coordinate) {
  return (coordinate + WideFloat::From(spec.coordinate_offset())) *
         WideFloat::From(spec.coordinate_scale());
}

}  // namespace

WideFloat AxialCoordinate(const v1::AxialRopeSpec& spec, const v1::AxialRopeAxis& axis, int64_t i,
                          int64_t n) {
  const v1::AxialCoordinateRule rule = RuleOn(spec, axis.axis());
  return spec.arithmetic() == v1::ARITHMETIC_EXACT ? Moved(spec, ExactByRule(rule, axis, i, n))
                                                   : Moved(spec, Float32ByRule(rule, axis, i, n));
}

WideFloat GivenCoordinate(const v1::AxialRopeSpec& spec, double coordinate) {
  return spec.arithmetic() == v1::ARITHMETIC_EXACT ? Moved(spec, WideFloat::From(coordinate))
                                                   : Moved(spec, static_cast<float>(coordinate));
}

}  // namespace posenc
