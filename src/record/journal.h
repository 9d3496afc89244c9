// Journal watches the coordinator and turns what it decides into a run's records:
// metrics, decisions, trace and events.
//
// Every driver has one. The payload of groups (lengths, rewards, versions) belongs to
// the driver, so a subclass answers for it. What the pool holds is read from the pool.
//
// Thread-safety: none; it belongs to the thread that drives the coordinator.
#ifndef PACE_RECORD_JOURNAL_H_
#define PACE_RECORD_JOURNAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "coordinator/coordinator.h"
#include "core/status.h"
#include "record/run_writer.h"
#include "record/step_metrics.h"

namespace pace {

class Journal : public CoordinatorObserver {
 public:
  // An event that the coordinator handles next.
  void OnEvent(const Event& event);
  void OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion> served,
                   const PoolState& pool) override;
  void OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                    std::optional<PolicyVersion> served) override;

  // The first failure to write, if any.
  const Status& status() const { return status_; }

  // Of the step under way: its plan and what was drawn.
  struct State {
    StepMetrics::State drawn = {};
    int64_t pool_bytes = 0;  // as it began
  };

 protected:
  // Settings outlive the journal; `writer` may be null.
  Journal(const Settings& settings, RunWriter* writer) : settings_(settings), writer_(writer) {}

  // Of a group that is drawn: its statistics, and its members that are trained on. What
  // the members point to stays valid until the next call.
  virtual PayloadStats StatsOf(GroupId group) = 0;
  virtual void AppendMembers(GroupId group, std::vector<TraceMember>& out) = 0;

  // Closes the step's row: fills in what the pool and the coordinator know, appends
  // `training`, writes it.
  MetricsRow EndStep(const StepTimes& times, StepTotals totals, const Coordinator& coordinator,
                     const MetricsRow& training = {});
  void Keep(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  State state() const { return {metrics_.state(), pool_bytes_}; }
  void Restore(const State& state);

  const Settings& settings_;
  RunWriter* const writer_;
  StepPlan plan_;

 private:
  StepMetrics metrics_;
  int64_t pool_bytes_ = 0;  // as the step began
  std::vector<TraceMember> members_;
  std::string json_;
  Status status_;
};

}  // namespace pace

#endif  // PACE_RECORD_JOURNAL_H_
