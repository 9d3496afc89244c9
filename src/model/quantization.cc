#include "model/quantization.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"

namespace pace {
namespace {

constexpr float kNotFinite = std::numeric_limits<float>::quiet_NaN();
// Of e4m3: the largest value is 0.875 * 2^9; below 2^-6 steps are equal.
constexpr float kLargestFraction = 0.875F;
constexpr int kLargestExponent = 9;
constexpr float kLeastPower = 0x1p-6F;
// Times a power of two, a float whose steps are an eighth of that power.
constexpr float kManySteps = 0x1.8p20F;
constexpr int kLeastScale = -100;

// The nearest value of e4m3. Beside a number of this size, steps of a float are those of the
// format. REQUIRES: |x| <= 448, or NaN
float Nearest(float x) {
  const uint32_t power = std::bit_cast<uint32_t>(x) & 0x7F800000U;
  const float large = std::max(std::bit_cast<float>(power), kLeastPower) * kManySteps;
  return (x + large) - large;
}

}  // namespace

bool IsQuantized(std::string_view parameter) {
  return parameter.ends_with("_proj.weight");
}

float Float8Scale(std::span<const float> row) {
  float largest = 0;
  for (const float x : row) {
    if (!std::isfinite(x)) return kNotFinite;
    largest = std::max(largest, std::abs(x));
  }
  if (largest == 0) return 1;
  int exponent = 0;
  const float fraction = std::frexp(largest, &exponent);
  exponent -= fraction <= kLargestFraction ? kLargestExponent : kLargestExponent - 1;
  return std::ldexp(1.0F, std::max(exponent, kLeastScale));
}

void RoundToFloat8(std::span<float> row) {
  const float scale = Float8Scale(row);
  for (float& x : row) x = scale * Nearest(x / scale);
}

WeightSet RoundedToFloat8(const ModelConfig& config, const WeightSet& weights) {
  struct Owner {
    WeightSet shared;
    std::list<std::vector<float>> rounded;
  };
  const auto owner = std::make_shared<Owner>(Owner{.shared = weights, .rounded = {}});
  TensorViews views;
  for (const Parameter& parameter : ParametersOf(config)) {
    TensorView view = weights.Get(parameter.name);
    if (IsQuantized(parameter.name)) {
      std::vector<float>& values = owner->rounded.emplace_back(weights.Floats(parameter.name));
      const auto width = static_cast<size_t>(parameter.shape.back());
      for (size_t at = 0; at < values.size(); at += width) {
        RoundToFloat8(std::span(values).subspan(at, width));
      }
      view.bytes = std::as_bytes(std::span(values));
      view.dtype = Dtype::kF32;
    }
    views.emplace(parameter.name, std::move(view));
  }
  Result<WeightSet> set = WeightSet::Create(config, std::move(views), owner);
  PACE_CHECK(set.ok(), set.status().message());
  return std::move(*set);
}

}  // namespace pace
