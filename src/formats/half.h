// F16 and BF16 to float and back.
//
// To float is exact for every value: subnormals, both zeros, infinities; a NaN
// keeps its sign and payload. From float rounds to nearest, ties to even;
// what is too large becomes an infinity; a NaN keeps its sign and the payload
// that fits, and is quiet.
// Thread-safety: pure functions.
#ifndef PACE_FORMATS_HALF_H_
#define PACE_FORMATS_HALF_H_

#include <bit>
#include <cstdint>

namespace pace {

float F16ToFloat(uint16_t bits);
uint16_t FloatToF16(float value);

inline float BF16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
uint16_t FloatToBF16(float value);

}  // namespace pace

#endif  // PACE_FORMATS_HALF_H_
