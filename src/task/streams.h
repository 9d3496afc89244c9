// The random streams of this folder: what is drawn for one purpose never moves
// what is drawn for another. The numbers are part of what a seed means.
#ifndef PACE_TASK_STREAMS_H_
#define PACE_TASK_STREAMS_H_

#include <cstdint>

namespace pace {

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

#endif  // PACE_TASK_STREAMS_H_
