#include "execution/journal.h"

#include <utility>

#include "coordinator/event_json.h"
#include "execution/run_observer.h"
#include "rollout/turn_count.h"

namespace pace {
namespace {

int64_t BytesOf(const GroupTrajectories& group) {
  int64_t total = 0;
  for (const std::optional<Trajectory>& member : group.members) {
    if (member.has_value()) total += member->num_bytes();
  }
  return total;
}

}  // namespace

Journal::Journal(const Settings& settings, const Clock& clock, const TrajectoryStore& store,
                 RunWriter* writer)
    : settings_(settings), clock_(clock), store_(store), writer_(writer) {}

void Journal::OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion> served) {
  plan_ = plan;
  step_pool_bytes_ = pool_bytes_;
  metrics_.BeginStep(plan);
  if (writer_ != nullptr) {
    Keep(writer_->WriteTraceStep(plan, settings_.batch.num_groups, served));
  }
}

void Journal::OnGroupAssembled(const GroupSummary& group) {
  ++occupancy_;
  pool_bytes_ += group.num_bytes;
}

void Journal::OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                           std::optional<PolicyVersion> served) {
  --occupancy_;
  pool_bytes_ -= group.num_bytes;
  const GroupTrajectories& payload = store_.At(group.id);
  const PayloadStats stats = payload.Stats();
  metrics_.AddDraw(group, decision, stats);
  if (watcher_ != nullptr) watcher_->OnGroupDrawn(group, decision, stats);
  if (writer_ == nullptr) return;
  Keep(writer_->WriteDecision(plan_, group, decision, stats));
  if (writer_->level() != RecordLevel::kFull) return;
  std::vector<std::vector<Segment>> segments;
  for (const std::optional<Trajectory>& member : payload.trained_members()) {
    segments.push_back(member->Segments());
  }
  std::vector<TraceMember> members;
  const bool scores = settings_.admission.UsesPrefixScores();
  for (size_t i = 0; i < segments.size(); ++i) {
    const Trajectory& trajectory = *payload.members[i];
    members.push_back({.completed = trajectory.completed,
                       .segments = segments[i],
                       .prefix_score = scores ? trajectory.response.prefix_score : std::nullopt});
  }
  Keep(writer_->WriteTraceDraw(group.id, members, served));
}

void Journal::Restore(const RunTotals& totals, const RunTotals& step_totals,
                      const PoolState& pool) {
  totals_ = totals;
  step_begin_ = step_totals;
  occupancy_ = pool.occupancy();
  pool_bytes_ = pool.num_bytes();
}

void Journal::OnGroupEvicted(const GroupTrajectories& group) {
  --occupancy_;
  pool_bytes_ -= BytesOf(group);
}

void Journal::OnEvent(const Event& event) {
  if (writer_ == nullptr || writer_->level() != RecordLevel::kFull) return;
  json_.clear();
  AppendEventJson(json_, event);
  Keep(writer_->WriteEvent(json_));
}

void Journal::OnResponse(const GroupTrajectories& group, int64_t member) {
  if (writer_ == nullptr || writer_->level() < RecordLevel::kDecisions) return;
  const auto index = static_cast<size_t>(member);
  const Trajectory& trajectory = *group.members[index];
  const ToolRecord tools = group.tools.empty() ? ToolRecord{} : group.tools[index];
  Keep(writer_->WriteRollout({.group = group.group,
                              .member = member,
                              .prompt = group.prompt,
                              .completed = trajectory.completed,
                              .reason = FinishReasonName(trajectory.reason),
                              .correct = trajectory.correct,
                              .reward = trajectory.reward,
                              .length = trajectory.response.num_policy_tokens(),
                              .turns = CountTurns(trajectory.response).assistant,
                              .tool_calls = tools.num_calls,
                              .tool_failures = tools.num_failures,
                              .tool_time = tools.time}));
}

void Journal::EndStep(const StepTimes& times, const Throughput& throughput,
                      const MetricList& training) {
  const Seconds now = clock_.Now();
  StepTotals totals;
  totals.time = now;
  totals.gpu_seconds = now.count() * static_cast<double>(settings_.cluster.AllGpus());
  totals.num_trained_groups = totals_.num_trained_groups;
  totals.num_tokens_generated = totals_.num_tokens_generated;
  totals.num_tokens_never_trained = totals_.num_tokens_never_trained;
  totals.num_interrupted = totals_.num_interrupted - step_begin_.num_interrupted;
  totals.num_step_tokens = totals_.num_tokens_generated - step_begin_.num_tokens_generated;
  totals.pool_bytes = step_pool_bytes_;
  totals.produced = throughput.produced();
  totals.consumed = throughput.consumed();
  last_row_ = metrics_.EndStep(times, totals);
  for (const Metric& metric : training) last_row_.emplace_back(metric.name, metric.value);
  step_begin_ = totals_;
  if (writer_ != nullptr) Keep(writer_->WriteMetrics(last_row_));
}

void Journal::AddEvaluation(PolicyVersion version, const MetricsRow& row) {
  if (writer_ != nullptr) Keep(writer_->WriteEvaluation(version, clock_.Now(), row));
}

}  // namespace pace
