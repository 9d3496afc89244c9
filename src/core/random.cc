#include "core/random.h"

#include <cmath>
#include <numbers>

#include "core/exact_math.h"

namespace pace {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

// [0, 2^53) scaled into [0, 1).
double ToUnit(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

uint64_t Join(uint32_t high, uint32_t low) {
  return (uint64_t{high} << 32) | low;
}

double ToOpenUnit(uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53;
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

CounterRandom::CounterRandom(uint64_t seed, uint32_t stream)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, stream_(stream) {}

std::array<uint32_t, 4> CounterRandom::Block(uint64_t a, uint64_t b) const {
  return Philox4x32(
      {static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b), stream_},
      key_);
}

uint64_t CounterRandom::Bits(uint64_t a, uint64_t b) const {
  const auto block = Block(a, b);
  return Join(block[1], block[0]);
}

double CounterRandom::Uniform(uint64_t a, uint64_t b) const {
  return ToUnit(Bits(a, b));
}

double CounterRandom::OpenUniform(uint64_t a, uint64_t b) const {
  return ToOpenUnit(Bits(a, b));
}

// Box and Muller's transform of two uniform numbers.
double CounterRandom::Normal(uint64_t a, uint64_t b) const {
  const auto block = Block(a, b);
  const double radius = std::sqrt(-2.0 * exact::Log(ToOpenUnit(Join(block[1], block[0]))));
  return radius * exact::Cos(2.0 * std::numbers::pi * ToUnit(Join(block[3], block[2])));
}

double CounterRandom::RoughNormal(uint64_t a, uint64_t b) const {
  const auto block = Block(a, b);
  const double radius = std::sqrt(-2.0 * std::log(ToOpenUnit(Join(block[1], block[0]))));
  return radius * std::cos(2.0 * std::numbers::pi * ToUnit(Join(block[3], block[2])));
}

double CounterRandom::Exponential(uint64_t a, uint64_t b) const {
  return -exact::Log(OpenUniform(a, b));
}

}  // namespace pace
