// How problems are shuffled, and which of them are held out.
//
// The shuffle has no state: it computes entry `position` of the permutation of 0 .. size - 1
// that belongs to (seed, epoch), in constant time and memory.
//
// A Feistel network whose round function is the counter-based generator permutes
// the smallest power of four that holds `size`; positions that land outside are
// sent through again until they land inside (at most four times on average), so
// what is left is a permutation of 0 .. size - 1.
//
// Thread-safety: a function of its arguments.
#ifndef PACE_TASK_SPLITS_H_
#define PACE_TASK_SPLITS_H_

#include <cstdint>
#include <string_view>

namespace pace {

// REQUIRES: 0 <= position < size <= 2^48, epoch >= 0
int64_t ShuffledPosition(uint64_t seed, int64_t epoch, int64_t position, int64_t size);

// Whether a problem of a generated task is held out from training: a fixed hash of its content
// decides, one in eight. The hash knows neither seed nor stream, so what one run evaluates on is
// never drawn for training by another, whatever their seeds.
//
// `key` names the problem's content; problems that differ only in the order of
// terms have one key. The rule never changes: base models rely on it.
bool IsHeldOut(std::string_view key);

// The random streams of this folder: draws for one purpose never move the draws for another. The
// numbers are part of what a seed means.
enum class TaskStream : uint32_t {
  kTraining = 0x7461736B,  // "task"
  kSupervised,
  kHeldOut,
  kSupervisedStyle,  // worked, or the bare answer
  kShuffle,
  kProbe,  // finding out whether a task can be split
  kStory,  // of word problems; its seed is a draw of the streams above
};

}  // namespace pace

#endif  // PACE_TASK_SPLITS_H_
