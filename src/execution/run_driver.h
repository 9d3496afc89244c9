// RunDriver: what both drivers of a training run do alike. The lab and the runtime add
// time and threads.
//
// Weights travel one way: the trainer's thread trains, takes a snapshot and, where engines
// sync to it, prepares it once (Train, Publish); the driver's thread hands the prepared
// weights to every engine (SyncWeights); each engine installs them at a token boundary.
//
// Thread-safety: none, but for Train, which may run on the trainer's thread.
#ifndef PACE_EXECUTION_RUN_DRIVER_H_
#define PACE_EXECUTION_RUN_DRIVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "coordinator/events.h"
#include "core/status.h"
#include "core/version.h"
#include "execution/checkpoint.h"
#include "execution/policy.h"
#include "execution/run.h"
#include "execution/training_run.h"
#include "record/step_clock.h"
#include "rollout/worker.h"

namespace pace {

// What a training step leaves.
struct TrainedStep {
  MetricList metrics = {};
  WeightSet weights = {};                          // of the next version
  std::optional<PublishedWeights> published = {};  // where engines sync to it
};

class RunDriver {
 public:
  RunDriver(const RunDriver&) = delete;
  RunDriver& operator=(const RunDriver&) = delete;

 protected:
  // All references outlive the driver.
  RunDriver(const Settings& settings, const Policy& policy, const RunSetup& setup,
            const Clock& clock, std::unique_ptr<TrainingRun> run);
  virtual ~RunDriver() = default;

  // Handles the event and carries out the commands that follow.
  Status Handle(const Event& event);
  // A response has finished. Where a reward function judges it, AskReward follows.
  Status Finish(FinishedResponse response);
  // The reward function has answered.
  Status FinishJudged(FinishedResponse response, const RewardRequest& request,
                      const RewardReply& reply);

  // The tool, or the environment, replied after this time: what the response reads; none where it
  // ends. After a fault its group may be gone.
  Result<std::optional<std::vector<TokenId>>> TakeReply(MemberId id,
                                                        const PartialResponse& response,
                                                        const ToolReply& reply, Seconds took);

  // What drivers do in their own time.
  virtual void Submit(size_t worker, GroupRequest request) = 0;
  // Ends a group. Returns its unfinished responses as far as they got; an engine that hands
  // them over later, where `keep` is false, returns none.
  virtual GroupInFlight Cancel(size_t worker, GroupId group, bool keep) = 0;
  virtual Status Sync(size_t worker, const PublishedWeights& weights) = 0;
  virtual void StartTraining() = 0;                           // on batch_
  virtual Status StartEvaluation(PolicyVersion version) = 0;  // of newest_
  virtual void StartCheckpoint() = 0;                         // checkpoint_
  // Has the reward computed; FinishJudged follows, now or later. This one waits for it.
  virtual Status AskReward(RewardRequest request, FinishedResponse response);
  // Brings published.weights into the form that workers take. From any thread, one at a time.
  virtual Status Prepare(PublishedWeights& published) = 0;

  // One step and its weights, on the trainer's thread.
  Result<TrainedStep> Train(PolicyVersion step, const std::vector<TrainSequence>& sequences);
  Result<PublishedWeights> Publish(PolicyVersion version, const WeightSet& weights);
  // From now on syncs hand out these weights.
  void Serve(PublishedWeights published);
  // The first weights of a new run.
  Status ServeFirst();

  // Ends the step under way: records it and takes over its weights. Returns the event of it.
  // `num_sampled`: tokens of all engines since the step before.
  StepFinished EndStep(TrainedStep trained, const StepTimes& times, int64_t num_sampled);
  void EndEvaluation(PolicyVersion version, std::vector<BenchmarkScore> scores);
  // Asks the caller, once, whether to stop. A checkpoint that is due anyway serves.
  Status StopIfAsked(bool checkpoint_is_due);

  // The checkpoint as far as drivers agree.
  Result<RunCheckpoint> Describe() const;
  // Writes it, from any thread, and keeps the newest `keep` (0 = all). `served` are the
  // weights that engines serve.
  Result<std::string> Write(const RunCheckpoint& run, const SavedTrainer& trainer,
                            const WeightSet& served, int64_t keep) const;
  // Puts the run back; `served` are not yet prepared.
  Result<ResumedRun> Restore();
  // The request with which a group of a checkpoint continues, and its worker.
  Result<ResumedGroup> ResumeInFlight(GroupInFlight group);
  // A worker is gone, and with it its unfinished groups but for what `unfinished` keeps of their
  // responses for the next groups of the same prompts.
  Status LoseWorker(WorkerId worker, std::vector<GroupInFlight> unfinished);
  // One line for whoever watches the run.
  void Note(const std::string& text) const;
  // The result but for the weights.
  RunResult TakeResult();

  const Settings& settings_;
  const Policy& policy_;
  const RunSetup& setup_;
  const Clock& clock_;
  const std::unique_ptr<TrainingRun> run_;
  StepClock step_clock_;

  PublishedWeights published_;               // that syncs hand out
  WeightSet newest_;                         // of the trainer's version
  std::optional<TrainBatch> batch_;          // to train on, or in training
  std::optional<PolicyVersion> checkpoint_;  // to save
  bool stopped_ = false;
  bool stop_after_save_ = false;

 private:
  Status Execute(const Command& command);
  // A reward could not be computed, or an environment failed: reward.on_error. `text` says of
  // which problem, and why.
  Status OnFault(GroupId group, const std::string& text);

  int64_t num_faults_in_row_ = 0;           // of rewards and environments, since this call began
  std::map<WorkerId, PolicyVersion> sent_;  // the last version sent to a worker
  bool stop_asked_ = false;
  RunResult result_;
};

}  // namespace pace

#endif  // PACE_EXECUTION_RUN_DRIVER_H_
