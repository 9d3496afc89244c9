#include "task/shuffle.h"

#include "core/check.h"
#include "core/random.h"
#include "task/streams.h"

namespace pace {
namespace {

constexpr uint64_t kNumRounds = 6;
constexpr int kMaxHalfBits = 24;

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

}  // namespace pace
