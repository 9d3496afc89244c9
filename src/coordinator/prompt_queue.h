// PromptQueue: the prompt that the next group starts from.
//
// Prompts form an endless stream. A prompt whose group was not trained on may be dispatched
// again: first resumed ones (their prefixes were kept), then returned ones, then the stream.
#ifndef PACE_COORDINATOR_PROMPT_QUEUE_H_
#define PACE_COORDINATOR_PROMPT_QUEUE_H_

#include <cstdint>
#include <deque>

#include "core/ids.h"

namespace pace {

struct Dispatch {
  PromptIndex prompt;
  int64_t attempt = 1;
};

class PromptQueue {
 public:
  // The next dispatch; there always is one.
  Dispatch Next() {
    for (std::deque<Dispatch>* queue : {&resumed_, &returned_}) {
      if (queue->empty()) continue;
      const Dispatch dispatch = queue->front();
      queue->pop_front();
      return dispatch;
    }
    return {PromptIndex(next_++), 1};
  }

  void Resume(const Dispatch& dispatch) { resumed_.push_back(dispatch); }
  void Return(const Dispatch& dispatch) { returned_.push_back(dispatch); }

  int64_t next() const { return next_; }
  const std::deque<Dispatch>& resumed() const { return resumed_; }
  const std::deque<Dispatch>& returned() const { return returned_; }
  void Restore(int64_t next, std::deque<Dispatch> resumed, std::deque<Dispatch> returned) {
    next_ = next;
    resumed_ = std::move(resumed);
    returned_ = std::move(returned);
  }

 private:
  int64_t next_ = 0;  // of the stream
  std::deque<Dispatch> resumed_, returned_;
};

}  // namespace pace

#endif  // PACE_COORDINATOR_PROMPT_QUEUE_H_
