// Recorder watches the coordinator decide and turns it into metrics, records
// and the pool's numbers. Thread-safety: none.
#ifndef PACE_SIM_RECORDER_H_
#define PACE_SIM_RECORDER_H_

#include <optional>
#include <vector>

#include "coordinator/coordinator.h"
#include "core/clock.h"
#include "record/pool_meter.h"
#include "record/run_writer.h"
#include "record/step_metrics.h"
#include "sim/group_store.h"
#include "sim/simulation.h"
#include "sim/workload.h"

namespace pace {

class Recorder final : public CoordinatorObserver {
 public:
  // All references outlive the recorder; `writer` may be null.
  Recorder(const Settings& settings, const Workload& workload, const Clock& clock,
           GroupStore& groups, RunWriter* writer);

  void OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion> served) override;
  void OnGroupAssembled(const GroupSummary& group) override;
  void OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                    std::optional<PolicyVersion> served) override;
  // A group left the pool without being drawn.
  void OnGroupEvicted(size_t slot);

  // Closes the step's row. `totals.pool_bytes` is filled in here.
  void EndStep(const StepTimes& times, StepTotals totals);

  // The score as the coordinator was told it.
  std::optional<double> PrefixScore(size_t slot, ResponseIndex response) const;

  // The first failure to write, if any.
  const Status& status() const { return status_; }
  // Rows and everything that follows from them.
  void Summarise(Seconds now, SimResult& result);
  const std::vector<MetricsRow>& rows() const { return rows_; }

 private:
  void Keep(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  const Settings& settings_;
  const Workload& workload_;
  const Clock& clock_;
  GroupStore& groups_;
  RunWriter* const writer_;
  const bool scores_;

  StepMetrics metrics_;
  std::vector<MetricsRow> rows_;
  std::vector<StepTimes> times_;
  PoolMeter meter_;
  StepPlan plan_;
  int64_t pool_bytes_ = 0;   // as the step began
  int64_t pool_tokens_ = 0;  // now
  std::vector<TraceMember> trace_members_;
  Status status_;
};

}  // namespace pace

#endif  // PACE_SIM_RECORDER_H_
