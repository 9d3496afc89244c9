// StepClock splits the trainer's time into parts that do not overlap.
//
// A step reaches from the end of the step before to its own end, so its first
// part is the sync of the weights that the step before made. At any moment the
// trainer is in one part, the first of these that applies:
//
//   train            it trains
//   sync             it sends weights that its last step made
//   other            a checkpoint, or engines that must stop before it starts
//   rescore_visible  it waits, and rescoring is why: it is told to wait until
//                    rescoring is over, or every engine with work is rescoring
//   wait_data        it waits for groups
//
// Rescoring that runs beside the other parts is hidden: the mean over engines
// of the time they spent rescoring, less what was visible.
//
// Thread-safety: none.
#ifndef PACE_RECORD_STEP_CLOCK_H_
#define PACE_RECORD_STEP_CLOCK_H_

#include <array>
#include <cstddef>

#include "core/clock.h"
#include "record/step_metrics.h"

namespace pace {

enum class StepPart { kWaitData, kTrain, kSync, kRescoreVisible, kOther };

class StepClock {
 public:
  // What the trainer does from now on; time before `now` goes to the part that
  // was set before.
  void Set(StepPart part, Seconds now);
  // Of this step's waiting for data, so much was for rescoring: where it is only
  // known afterwards. No more than there was.
  void BlameRescoring(Seconds time);

  // What a checkpoint keeps of it.
  struct State {
    StepPart part = StepPart::kWaitData;
    Seconds last{0};
    std::array<Seconds, 5> parts{};
  };
  const State& state() const { return state_; }
  void Restore(const State& state) { state_ = state; }

  // Closes the step. `rescoring` is the mean over engines in this step.
  StepTimes EndStep(Seconds now, Seconds rescoring);

 private:
  Seconds& Of(StepPart part) { return state_.parts[static_cast<size_t>(part)]; }

  State state_;
};

}  // namespace pace

#endif  // PACE_RECORD_STEP_CLOCK_H_
