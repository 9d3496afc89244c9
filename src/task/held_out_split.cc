#include "task/held_out_split.h"

#include <cstdint>

namespace pace {
namespace {

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

bool IsHeldOut(std::string_view key) {
  return Hash(key) % kHeldOutOneIn == 0;
}

}  // namespace pace
