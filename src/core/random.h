// Counter-based random numbers: Philox4x32-10.
//
// A draw is a pure function of (seed, stream, index): no state to save, no
// order to keep, the same bits under every schedule and on every machine.
//
//   CounterRandom lengths(seed, kLengthStream);
//   double u = lengths.Uniform(prompt, member);
//
// Thread-safety: immutable values.
#ifndef PACE_CORE_RANDOM_H_
#define PACE_CORE_RANDOM_H_

#include <array>
#include <cstdint>

namespace pace {

// The block function of Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3" (2011), ten rounds.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class CounterRandom {
 public:
  // `stream` separates uses of one seed; it takes any value.
  CounterRandom(uint64_t seed, uint32_t stream);

  // 64 random bits for (a, b). REQUIRES: 0 <= b < 2^32.
  uint64_t Bits(uint64_t a, uint64_t b = 0) const;
  // Uniform in [0, 1), 53 bits.
  double Uniform(uint64_t a, uint64_t b = 0) const;
  // Uniform in (0, 1): safe under a logarithm.
  double OpenUniform(uint64_t a, uint64_t b = 0) const;
  // Standard normal.
  double Normal(uint64_t a, uint64_t b = 0) const;
  // The same draw by the C library: ten times faster, but the last bits depend on the machine.
  // For the initial weights of a network.
  double RoughNormal(uint64_t a, uint64_t b = 0) const;
  // Exponential with mean 1.
  double Exponential(uint64_t a, uint64_t b = 0) const;

 private:
  std::array<uint32_t, 4> Block(uint64_t a, uint64_t b) const;

  std::array<uint32_t, 2> key_;
  uint32_t stream_;
};

}  // namespace pace

#endif  // PACE_CORE_RANDOM_H_
