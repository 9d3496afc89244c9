#include "execution/trajectory.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "rollout/turn_count.h"

namespace pace {

std::vector<Segment> Trajectory::Segments() const {
  VersionRuns runs;
  for (const TokenRecord& token : response.tokens) {
    if (!token.is_tool) runs.Append(token.version, 1);
  }
  return runs.segments();
}

void EnvironmentRecord::Add(const EnvironmentStep& step) {
  ++num_steps;
  if (step.reward.has_value()) reward = reward.value_or(0) + *step.reward;
  if (step.correct.has_value()) correct = step.correct;
  if (!step.detail.empty()) detail = step.detail;
  state = step.state;
}

int64_t Trajectory::num_bytes() const {
  // Recorded with every response, so the same on every machine and in every version.
  constexpr int64_t kBytes = 88;
  constexpr int64_t kTokenBytes = 24;
  return kBytes + kTokenBytes * std::ssize(response.tokens);
}

bool GroupTrajectories::complete() const {
  return std::all_of(members.begin(), members.end(),
                     [](const auto& member) { return member.has_value(); });
}

bool GroupTrajectories::uniform() const {
  return std::all_of(members.begin(), members.end(), [&](const auto& member) {
    return member.has_value() && member->reward == members.front()->reward;
  });
}

PayloadStats GroupTrajectories::Stats() const {
  PayloadStats stats;
  double turns = 0, truncated = 0;
  for (const FinishedTrajectory& member : trained_members()) {
    stats.length += static_cast<double>(member->response.num_policy_tokens());
    stats.reward += member->reward;
    turns += static_cast<double>(CountTurns(member->response).assistant);
    truncated += member->reason == FinishReason::kMaxTokens ? 1 : 0;
  }
  const auto count = static_cast<double>(trained_members().size());
  stats.length /= count;
  stats.reward /= count;
  stats.turns = turns / count;
  stats.equal_rewards = uniform();
  stats.truncated = truncated / count;
  if (tools.empty()) return stats;
  ToolRecord all;
  for (size_t i = 0; i < trained_members().size(); ++i) all += tools[i];
  stats.tools = {.calls = static_cast<double>(all.num_calls) / count,
                 .failures = static_cast<double>(all.num_failures) / count,
                 .seconds = all.time.count() / count};
  return stats;
}

int64_t GroupTrajectories::num_tokens() const {
  int64_t total = 0;
  for (const FinishedTrajectory& member : members) {
    if (member.has_value()) total += member->response.num_policy_tokens();
  }
  return total;
}

int64_t GroupTrajectories::num_greedy_tokens() const {
  const bool has_any = greedy_last && members.back().has_value();
  return has_any ? members.back()->response.num_policy_tokens() : 0;
}

void GroupTrajectories::AppendTo(std::vector<TrainSequence>& out, RolloutLogprobs logprobs) const {
  const bool sampled = logprobs == RolloutLogprobs::kSampled;
  for (const FinishedTrajectory& member : trained_members()) {
    const std::vector<TokenRecord>& tokens = member->response.tokens;
    TrainSequence sequence;
    sequence.tokens = prompt_tokens;
    sequence.num_prompt_tokens = static_cast<int64_t>(prompt_tokens.size());
    sequence.group = group.value();
    sequence.reward = member->reward;
    if (greedy_last) sequence.baseline = members.back()->reward;
    for (const TokenRecord& token : tokens) {
      sequence.tokens.push_back(token.id);
      sequence.mask.push_back(token.is_tool ? 0 : 1);
      sequence.rollout_logprobs.push_back(sampled ? token.sampled_logprob : token.logprob);
      sequence.versions.push_back(token.version.step());
    }
    out.push_back(std::move(sequence));
  }
}

Status CheckShape(const GroupTrajectories& group) {
  if (!group.tools.empty() && group.tools.size() != group.members.size()) {
    return DataLoss("tools: has ", group.tools.size(), " records of ", group.members.size());
  }
  if (group.greedy_last && group.members.size() < 2) {
    return DataLoss("greedy_last: a group with a greedy member has others");
  }
  return Status::Ok();
}

void TrajectoryStore::Begin(GroupTrajectories group) {
  const GroupId id = group.group;
  const bool added = groups_.emplace(id, std::move(group)).second;
  PACE_CHECK(added, "group ", id.value(), " began twice");
}

void TrajectoryStore::Finish(MemberId id, Trajectory trajectory) {
  const auto found = groups_.find(id.group);
  PACE_CHECK(found != groups_.end(), "no group ", id.group.value());
  FinishedTrajectory& member = found->second.members[static_cast<size_t>(id.member)];
  PACE_CHECK(!member.has_value(), "member ", id.member, " finished twice");
  member = std::move(trajectory);
}

void TrajectoryStore::AddCall(MemberId id, const ToolRecord& call) {
  const auto found = groups_.find(id.group);
  PACE_CHECK(found != groups_.end(), "no group ", id.group.value());
  found->second.tools.at(static_cast<size_t>(id.member)) += call;
}

void TrajectoryStore::AddStep(MemberId id, const EnvironmentStep& step) {
  const auto found = groups_.find(id.group);
  PACE_CHECK(found != groups_.end(), "no group ", id.group.value());
  found->second.environments[id.member].Add(step);
}

void TrajectoryStore::FailEnvironment(MemberId id) {
  const auto found = groups_.find(id.group);
  PACE_CHECK(found != groups_.end(), "no group ", id.group.value());
  EnvironmentRecord& record = found->second.environments[id.member];
  record = {.num_steps = record.num_steps + 1, .reward = 0, .correct = false};
}

const GroupTrajectories* TrajectoryStore::Find(GroupId group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : &found->second;
}

const GroupTrajectories& TrajectoryStore::At(GroupId group) const {
  const GroupTrajectories* const found = Find(group);
  PACE_CHECK(found != nullptr, "no group ", group.value());
  return *found;
}

std::vector<TrainSequence> TrajectoryStore::Sequences(std::span<const GroupId> groups,
                                                      RolloutLogprobs logprobs) const {
  std::vector<TrainSequence> sequences;
  for (const GroupId group : groups) At(group).AppendTo(sequences, logprobs);
  return sequences;
}

}  // namespace pace
