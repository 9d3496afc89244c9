#include "core/random.h"

#include <cmath>
#include <numbers>

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

uint64_t CounterRandom::Bits(uint64_t a, uint64_t b) const {
  const auto block = Philox4x32(
      {static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b), stream_},
      key_);
  return (uint64_t{block[1]} << 32) | block[0];
}

double CounterRandom::Uniform(uint64_t a, uint64_t b) const {
  return ToUnit(Bits(a, b));
}

double CounterRandom::OpenUniform(uint64_t a, uint64_t b) const {
  return ToOpenUnit(Bits(a, b));
}

double CounterRandom::Normal(uint64_t a, uint64_t b) const {
  const auto block = Philox4x32(
      {static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b), stream_},
      key_);
  const double radius =
      std::sqrt(-2.0 * std::log(ToOpenUnit((uint64_t{block[1]} << 32) | block[0])));
  const double angle = 2.0 * std::numbers::pi * ToUnit((uint64_t{block[3]} << 32) | block[2]);
  return radius * std::cos(angle);
}

double CounterRandom::Exponential(uint64_t a, uint64_t b) const {
  return -std::log(OpenUniform(a, b));
}

}  // namespace pace
