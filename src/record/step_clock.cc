#include "record/step_clock.h"

#include <algorithm>

namespace pace {

void StepClock::Set(StepPart part, Seconds now) {
  Of(state_.part) += now - state_.last;
  state_.last = now;
  state_.part = part;
}

void StepClock::BlameRescoring(Seconds time) {
  const Seconds moved = std::clamp(time, Seconds(0), Of(StepPart::kWaitData));
  Of(StepPart::kWaitData) -= moved;
  Of(StepPart::kRescoreVisible) += moved;
}

StepTimes StepClock::EndStep(Seconds now, Seconds rescoring) {
  Set(state_.part, now);
  StepTimes times;
  times.wait_data = Of(StepPart::kWaitData);
  times.train = Of(StepPart::kTrain);
  times.sync = Of(StepPart::kSync);
  times.rescore_visible = Of(StepPart::kRescoreVisible);
  times.other = Of(StepPart::kOther);
  // Summed, not subtracted, so that the parts make up the step to the bit.
  times.step = times.wait_data + times.train + times.sync + times.rescore_visible + times.other;
  times.rescore_hidden = std::max(Seconds(0), rescoring - times.rescore_visible);
  state_.parts = {};
  return times;
}

}  // namespace pace
