// Journal watches the coordinator decide, and turns a run into its records:
// metrics, decisions, trace, events, responses and warnings.
//
// Thread-safety: none; it belongs to the thread that drives the coordinator.
#ifndef PACE_EXECUTION_JOURNAL_H_
#define PACE_EXECUTION_JOURNAL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "coordinator/coordinator.h"
#include "core/clock.h"
#include "core/status.h"
#include "execution/response_recorder.h"
#include "execution/trajectory.h"
#include "record/run_warnings.h"
#include "record/run_writer.h"
#include "record/step_metrics.h"
#include "train/metric.h"

namespace pace {

class PromptSource;
class RunObserver;
struct BenchmarkScore;

// Totals since the run began; a checkpoint keeps them.
struct RunTotals {
  int64_t num_trained_groups = 0;
  int64_t num_tokens_generated = 0;
  int64_t num_tokens_never_trained = 0;
  int64_t num_interrupted = 0;
};

class Journal final : public CoordinatorObserver {
 public:
  // All references outlive the journal; `writer` may be null.
  Journal(const Settings& settings, const PromptSource& prompt_source, const Clock& clock,
          const TrajectoryStore& store, RunWriter* writer);

  void OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion> served) override;
  void OnGroupAssembled(const GroupSummary& group) override;
  void OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                    std::optional<PolicyVersion> served) override;
  // Told of every draw with what the group holds, and of warnings; null = nobody.
  void Watch(RunObserver* watcher) { watcher_ = watcher; }
  // What GPU time counts. From the settings' cluster until this is called; 0 = the
  // run has none.
  void SetNumGpus(int64_t num_gpus) { num_gpus_ = num_gpus; }
  // A group left the pool without being drawn.
  void OnGroupEvicted(const GroupTrajectories& group);

  void OnEvent(const Event& event);
  // A member of this group has finished.
  void OnResponse(const GroupTrajectories& group, int64_t member);
  // Dynamic sampling drops this group: its rewards are equal.
  void OnGroupDropped(const GroupTrajectories& group, PolicyVersion step);
  // Closes the step's row.
  void EndStep(const StepTimes& times, const Throughput& throughput, const MetricList& training);
  void AddEvaluation(PolicyVersion version, const std::vector<BenchmarkScore>& scores);

  RunTotals& totals() { return totals_; }
  const RunTotals& totals() const { return totals_; }
  const RunTotals& step_totals() const { return step_begin_; }  // as the last step ended
  // Goes on behind a checkpoint, with what the pool holds.
  void Restore(const RunTotals& totals, const RunTotals& step_totals, const PoolState& pool);

  // The last finished row; empty before the first.
  const MetricsRow& last_row() const { return last_row_; }
  int64_t occupancy() const { return occupancy_; }
  // The first failure to write, if any.
  const Status& status() const { return status_; }

 private:
  void Keep(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  void AddFacts(const GroupTrajectories& group, const Decision& decision);
  void Warn(const std::vector<RunWarning>& warnings);

  const Settings& settings_;
  const PromptSource& prompt_source_;
  const Clock& clock_;
  const TrajectoryStore& store_;
  RunWriter* const writer_;
  RunObserver* watcher_ = nullptr;

  StepMetrics metrics_;
  ResponseRecorder responses_;
  RunWarnings warnings_;
  StepFacts facts_;  // of the step under way
  int64_t num_gpus_;
  MetricsRow last_row_;
  RunTotals totals_;
  RunTotals step_begin_;
  StepPlan plan_;
  int64_t occupancy_ = 0;        // groups in the pool
  int64_t pool_bytes_ = 0;       // now
  int64_t pool_tokens_ = 0;      // now
  int64_t step_pool_bytes_ = 0;  // as the step began
  std::string json_;
  Status status_;
};

}  // namespace pace

#endif  // PACE_EXECUTION_JOURNAL_H_
