#include "task/splits.h"

#include <cstdint>

#include "core/check.h"
#include "core/random.h"

namespace pace {
namespace {

constexpr uint64_t kNumRounds = 6;
constexpr int kMaxHalfBits = 24;

constexpr uint64_t kHeldOutOneIn = 8;

// FNV-1a, then the finisher of SplitMix64, since the low bits of FNV-1a alone
// follow those of the last characters.
uint64_t Hash(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3;
  }
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
  return hash ^ (hash >> 31);
}

}  // namespace

int64_t ShuffledPosition(uint64_t seed, int64_t epoch, int64_t position, int64_t size) {
  PACE_CHECK(0 <= position && position < size && epoch >= 0, "position ", position, " of ", size,
             ", epoch ", epoch);
  int half_bits = 0;
  while ((int64_t{1} << (2 * half_bits)) < size) ++half_bits;
  PACE_CHECK(half_bits <= kMaxHalfBits, "size ", size);

  const CounterRandom random(seed, static_cast<uint32_t>(TaskStream::kShuffle));
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  auto at = static_cast<uint64_t>(position);
  do {
    uint64_t left = at >> half_bits;
    uint64_t right = at & mask;
    for (uint64_t round = 0; round < kNumRounds; ++round) {
      const uint64_t bits =
          random.Bits(static_cast<uint64_t>(epoch), round << kMaxHalfBits | right);
      const uint64_t mixed = left ^ (bits & mask);
      left = right;
      right = mixed;
    }
    at = left << half_bits | right;
  } while (at >= static_cast<uint64_t>(size));
  return static_cast<int64_t>(at);
}

bool IsHeldOut(std::string_view key) {
  return Hash(key) % kHeldOutOneIn == 0;
}

}  // namespace pace
