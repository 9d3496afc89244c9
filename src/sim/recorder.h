// Recorder: the simulator's journal, with the numbers that a simulation returns.
// Thread-safety: none.
#ifndef PACE_SIM_RECORDER_H_
#define PACE_SIM_RECORDER_H_

#include <optional>
#include <vector>

#include "core/clock.h"
#include "record/journal.h"
#include "record/pool_meter.h"
#include "sim/group_store.h"
#include "sim/simulation.h"
#include "sim/workload.h"

namespace pace {

class Recorder final : public Journal {
 public:
  // All references outlive the recorder; `writer` may be null.
  Recorder(const Settings& settings, const Workload& workload, const Clock& clock,
           GroupStore& groups, RunWriter* writer);

  void OnGroupAssembled(const GroupSummary& group) override;
  void OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                    std::optional<PolicyVersion> served) override;
  void OnGroupEvicted(GroupId group) override { Leave(group); }
  void EndStep(const StepTimes& times, const StepTotals& totals, const Coordinator& coordinator);
  // checkpoints/STEP.json of a run that is recorded in full.
  void OnCheckpoint(PolicyVersion step, const Coordinator& coordinator);

  // The score as the coordinator was told it.
  std::optional<double> PrefixScore(size_t slot, ResponseIndex response) const;
  // Rows and everything that follows from them.
  void Summarise(const Coordinator& coordinator, SimResult& result);

 private:
  PayloadStats StatsOf(GroupId group) override { return groups_.Stats(groups_.Find(group)); }
  void AppendMembers(GroupId group, std::vector<TraceMember>& out) override;
  void Leave(GroupId group);  // the pool

  const Workload& workload_;
  const Clock& clock_;
  GroupStore& groups_;
  const bool scores_;

  std::vector<MetricsRow> rows_;
  std::vector<StepTimes> times_;
  PoolMeter meter_;
};

}  // namespace pace

#endif  // PACE_SIM_RECORDER_H_
