// Random values for tests.
#ifndef PACE_MODEL_CPU_RANDOM_FLOATS_H_
#define PACE_MODEL_CPU_RANDOM_FLOATS_H_

#include <bit>
#include <cstdint>
#include <vector>

#include "core/random.h"

namespace pace {

// Normal with this deviation; a pure function of the seed.
inline std::vector<float> RandomFloats(int64_t n, uint64_t seed, double deviation = 1.0) {
  const CounterRandom random(seed, 0x666C6F61);
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(random.Normal(i) * deviation);
  }
  return values;
}

// For comparisons to the bit, where 0 and -0 differ and a NaN equals itself.
inline std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_RANDOM_FLOATS_H_
