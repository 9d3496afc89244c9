// A shuffle without state: entry `position` of the permutation of 0 .. size - 1
// that belongs to (seed, epoch), in constant time and memory.
//
// A Feistel network whose round function is the counter-based generator permutes
// the smallest power of four that holds `size`; positions that land outside are
// sent through again until they land inside (at most four times on average), so
// what is left is a permutation of 0 .. size - 1.
//
// Thread-safety: a function of its arguments.
#ifndef PACE_TASK_SHUFFLE_H_
#define PACE_TASK_SHUFFLE_H_

#include <cstdint>

namespace pace {

// REQUIRES: 0 <= position < size <= 2^48, epoch >= 0
int64_t ShuffledPosition(uint64_t seed, int64_t epoch, int64_t position, int64_t size);

}  // namespace pace

#endif  // PACE_TASK_SHUFFLE_H_
