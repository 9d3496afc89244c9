// Which problems of a generated task may be trained on, and which are held out.
//
// A fixed hash of the problem's content decides, one in eight being held out.
// The hash knows neither seed nor stream: whatever seeds two runs use, what one
// of them evaluates on is never drawn for training, reinforcement or supervised,
// by any other.
//
// Thread-safety: a function of its argument.
#ifndef PACE_TASK_HELD_OUT_SPLIT_H_
#define PACE_TASK_HELD_OUT_SPLIT_H_

#include <string_view>

namespace pace {

// `key` names the problem's content; problems that differ only in the order of
// terms have one key. The rule never changes: base models rely on it.
bool IsHeldOut(std::string_view key);

}  // namespace pace

#endif  // PACE_TASK_HELD_OUT_SPLIT_H_
