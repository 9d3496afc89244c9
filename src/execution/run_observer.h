// RunObserver is told how a training run goes on, for people who watch it.
// Thread-safety: called from the driver's thread alone.
#ifndef PACE_EXECUTION_RUN_OBSERVER_H_
#define PACE_EXECUTION_RUN_OBSERVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/version.h"
#include "execution/evaluator.h"
#include "record/step_metrics.h"

namespace pace {

// How things stand between two steps.
struct RunPulse {
  Seconds time{0};
  int64_t occupancy = 0;  // groups in the pool
  double tokens_per_second = 0;
  std::string waiting = {};  // what the next step waits for; empty while training
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void OnStep(int64_t /*steps_done*/, const MetricsRow& /*row*/) {}
  // A step drew a group, and ruled on it.
  virtual void OnGroupDrawn(const GroupSummary&, const Decision&, const PayloadStats&) {}
  virtual void OnEvaluation(PolicyVersion, const std::vector<BenchmarkScore>&) {}
  virtual void OnCheckpoint(const std::string& /*folder*/) {}
  virtual void OnPulse(const RunPulse&) {}
  // RunWarnings has something to say, in one line.
  virtual void OnWarning(const std::string& /*text*/) {}
  // Something a person should know: a checkpoint that was skipped, a stall.
  virtual void OnNote(const std::string& /*note*/) {}
};

}  // namespace pace

#endif  // PACE_EXECUTION_RUN_OBSERVER_H_
