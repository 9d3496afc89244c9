// Trajectories: the payload of groups, from StartGroup until a group is trained on or
// dropped.
//
// The coordinator knows ids and staleness of groups; tokens, log-probs and rewards are
// here. Every finished response adds a trajectory to its group.
//
// Thread-safety: none.
#ifndef PACE_EXECUTION_TRAJECTORY_H_
#define PACE_EXECUTION_TRAJECTORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/train_options.h"
#include "core/clock.h"
#include "core/ids.h"
#include "core/staleness.h"
#include "core/status.h"
#include "core/version.h"
#include "judge/environment_turn.h"
#include "record/step_metrics.h"
#include "rollout/request.h"
#include "train/minibatch.h"

namespace pace {

// What one response used of the tool.
struct ToolRecord {
  int64_t num_calls = 0;
  int64_t num_failures = 0;  // of these: no program that ended with code 0
  Seconds time{0};           // of the run's clock, from call to reply

  ToolRecord& operator+=(const ToolRecord& other) {
    num_calls += other.num_calls;
    num_failures += other.num_failures;
    time += other.time;
    return *this;
  }
  friend bool operator==(const ToolRecord&, const ToolRecord&) = default;
};

// What the environment of one response said so far.
struct EnvironmentRecord {
  int64_t num_steps = 0;
  std::optional<double> reward = {};  // the sum; none where no step gave one
  std::optional<bool> correct = {};   // as the last step that said so; default: reward > 0
  std::string detail = {};            // of the last step that gave one
  std::string state = {};             // after the last step; empty where it offers none

  void Add(const EnvironmentStep& step);
  bool is_correct() const { return correct.value_or(reward.value_or(0) > 0); }
  friend bool operator==(const EnvironmentRecord&, const EnvironmentRecord&) = default;
};

struct Trajectory {
  PartialResponse response = {};
  FinishReason reason = FinishReason::kMaxTokens;
  bool correct = false;
  double reward = 0;
  PolicyVersion completed{};  // the trainer's version as it finished

  std::vector<Segment> Segments() const;
  int64_t num_bytes() const;
};

// A member of a group: its trajectory once it has finished, then immutable. Copies share
// it, so that a checkpoint does not copy the tokens.
class FinishedTrajectory {
 public:
  FinishedTrajectory() = default;
  FinishedTrajectory(Trajectory trajectory)  // NOLINT(google-explicit-constructor)
      : shared_(std::make_shared<const Trajectory>(std::move(trajectory))) {}

  bool has_value() const { return shared_ != nullptr; }
  // REQUIRES: has_value
  const Trajectory& operator*() const { return *shared_; }
  const Trajectory* operator->() const { return shared_.get(); }

 private:
  std::shared_ptr<const Trajectory> shared_;
};

struct GroupTrajectories {
  GroupId group{};
  PromptIndex prompt{};
  WorkerId worker{};
  std::vector<TokenId> prompt_tokens = {};
  std::vector<FinishedTrajectory> members = {};  // none: unfinished
  // Tool use of each member so far; empty without tools.
  std::vector<ToolRecord> tools = {};
  // Of the members whose environment has taken a turn.
  std::map<int64_t, EnvironmentRecord> environments = {};
  // The last member was decoded greedily: its reward is the baseline of the others, and it
  // is not trained on.
  bool greedy_last = false;

  bool complete() const;
  // Every reward is the same, that of a greedy response too.
  bool uniform() const;
  // Of the members that are trained on. REQUIRES: complete
  PayloadStats Stats() const;
  // Policy tokens of what finished, and of these the greedy member's.
  int64_t num_tokens() const;
  int64_t num_greedy_tokens() const;
  // The members to train on: all but a greedy one. REQUIRES: complete
  void AppendTo(std::vector<TrainSequence>& out,
                RolloutLogprobs logprobs = RolloutLogprobs::kFull) const;
  std::span<const FinishedTrajectory> trained_members() const {
    return {members.data(), members.size() - (greedy_last ? 1 : 0)};
  }
};

// Checks that the group has tool records for all members or none, and that a greedy member
// is not alone.
Status CheckShape(const GroupTrajectories& group);

class TrajectoryStore {
 public:
  // REQUIRES: not there yet
  void Begin(GroupTrajectories group);
  // REQUIRES: the group is there and the member unfinished
  void Finish(MemberId id, Trajectory trajectory);
  // REQUIRES: the group is there, with tools
  void AddCall(MemberId id, const ToolRecord& call);
  // REQUIRES: the group is there
  void AddStep(MemberId id, const EnvironmentStep& step);
  // Its environment failed: the reward is 0.
  void FailEnvironment(MemberId id);
  void Remove(GroupId group) { groups_.erase(group); }

  // Null where there is none.
  const GroupTrajectories* Find(GroupId group) const;
  // REQUIRES: there
  const GroupTrajectories& At(GroupId group) const;
  const std::map<GroupId, GroupTrajectories>& groups() const { return groups_; }

  // The responses of these groups, in order. REQUIRES: there, complete
  std::vector<TrainSequence> Sequences(std::span<const GroupId> groups,
                                       RolloutLogprobs logprobs) const;

 private:
  std::map<GroupId, GroupTrajectories> groups_;
};

}  // namespace pace

#endif  // PACE_EXECUTION_TRAJECTORY_H_
