// RunJournal: the journal of a run that learns. To what every driver records it adds
// responses as text, rollouts, evaluations, warnings and the trainer's metrics.
//
// Thread-safety: none; it belongs to the thread that drives the coordinator.
#ifndef PACE_EXECUTION_RUN_JOURNAL_H_
#define PACE_EXECUTION_RUN_JOURNAL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "config/settings.h"
#include "core/clock.h"
#include "execution/response_recorder.h"
#include "execution/trajectory.h"
#include "record/journal.h"
#include "record/run_warnings.h"
#include "train/math/metric.h"

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

class RunJournal final : public Journal {
 public:
  // All references outlive the journal; `writer` and `observer` may be null. The observer
  // is told of every draw with what the group holds, and of warnings.
  RunJournal(const Settings& settings, const PromptSource& prompt_source, const Clock& clock,
             const TrajectoryStore& store, RunWriter* writer, RunObserver* observer);

  void OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion> served,
                   const PoolState& pool) override;
  void OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                    std::optional<PolicyVersion> served) override;
  // What GPU time counts. From the settings' cluster until this is called; 0 = the
  // run has none.
  void SetNumGpus(int64_t num_gpus) { num_gpus_ = num_gpus; }

  // A member of this group has finished. `detail`: what its reward function gave beside the
  // score, a JSON object or empty.
  void OnResponse(const GroupTrajectories& group, int64_t member, std::string_view detail = {});
  // Dynamic sampling drops this group: its rewards are equal.
  void OnGroupDropped(const GroupTrajectories& group, PolicyVersion step);
  // A reward or an environment failed; see RunWarnings.
  void OnFailedReward(PolicyVersion step, const std::string& text, bool last);
  // Closes the step's row and returns it.
  MetricsRow EndStep(const StepTimes& times, const Coordinator& coordinator,
                     const MetricList& training);
  void AddEvaluation(PolicyVersion version, const std::vector<BenchmarkScore>& scores);

  RunTotals& totals() { return totals_; }
  const RunTotals& totals() const { return totals_; }
  const RunTotals& step_totals() const { return step_begin_; }  // as the last step ended
  const RunWarnings::State& warnings() const { return warnings_.state(); }
  // Of a step that has begun and waits for groups.
  struct UnderWay {
    State journal = {};
    StepFacts facts = {};
  };
  UnderWay under_way() const { return {state(), facts_}; }
  // Continues after a checkpoint, with the step that was under way there.
  void Restore(const RunTotals& totals, const RunTotals& step_totals,
               const RunWarnings::State& warnings, const UnderWay& under_way);

 private:
  PayloadStats StatsOf(GroupId group) override { return store_.At(group).Stats(); }
  void AppendMembers(GroupId group, std::vector<TraceMember>& out) override;
  void AddFacts(const GroupTrajectories& group, const Decision& decision);
  void Warn(const std::vector<RunWarning>& warnings);

  const PromptSource& prompt_source_;
  const Clock& clock_;
  const TrajectoryStore& store_;
  RunObserver* const observer_;

  ResponseRecorder responses_;
  RunWarnings warnings_;
  StepFacts facts_;  // of the step under way
  int64_t num_gpus_;
  RunTotals totals_;
  RunTotals step_begin_;
  std::vector<std::vector<Segment>> segments_;  // that AppendMembers lends
};

}  // namespace pace

#endif  // PACE_EXECUTION_RUN_JOURNAL_H_
