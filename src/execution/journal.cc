#include "execution/journal.h"

#include <utility>

#include "config/methods.h"
#include "coordinator/event_json.h"
#include "execution/evaluator.h"
#include "execution/prompt_source.h"
#include "execution/run_observer.h"
#include "rollout/turn_count.h"
#include "train/advantage/advantages.h"

namespace pace {
namespace {

int64_t BytesOf(const GroupTrajectories& group) {
  int64_t total = 0;
  for (const FinishedTrajectory& member : group.members) {
    if (member.has_value()) total += member->num_bytes();
  }
  return total;
}

// Whether a group of equal rewards teaches nothing.
bool ComparesMembers(const Settings& settings) {
  if (settings.batch.group_size < 2) return false;
  const auto estimator = MakeAdvantageEstimator(settings.train.advantage);
  return !estimator.ok() || (*estimator)->equal_rewards_give_zero();
}

WarningOptions WarningOptionsOf(const Settings& settings, const PromptSource& prompt_source) {
  std::string verifier = Concat("task.verifier = ", settings.task.verifier);
  if (settings.task.verifier == "auto") {
    verifier += Concat(" (", Name(prompt_source.ProblemAt(PromptIndex(0)).verifier), ")");
  }
  return {.method = MethodTitle(MethodName(settings.admission)),
          .min_observations = settings.admission.min_observations,
          .verifier = std::move(verifier),
          .compares_members = ComparesMembers(settings)};
}

}  // namespace

Journal::Journal(const Settings& settings, const PromptSource& prompt_source, const Clock& clock,
                 const TrajectoryStore& store, RunWriter* writer)
    : settings_(settings),
      prompt_source_(prompt_source),
      clock_(clock),
      store_(store),
      writer_(writer),
      responses_(settings, prompt_source, writer),
      warnings_(WarningOptionsOf(settings, prompt_source)),
      num_gpus_(settings.cluster.AllGpus()) {}

void Journal::OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion> served) {
  plan_ = plan;
  step_pool_bytes_ = pool_bytes_;
  metrics_.BeginStep(plan);
  facts_ = {.step = plan.step.step(), .budget = plan.budget};
  if (writer_ != nullptr) {
    Keep(writer_->WriteTraceStep(plan, settings_.batch.num_groups, served));
  }
}

void Journal::OnGroupAssembled(const GroupSummary& group) {
  ++occupancy_;
  pool_bytes_ += group.num_bytes;
  pool_tokens_ += group.num_tokens;
}

void Journal::OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                           std::optional<PolicyVersion> served) {
  --occupancy_;
  pool_bytes_ -= group.num_bytes;
  pool_tokens_ -= group.num_tokens;
  const GroupTrajectories& payload = store_.At(group.id);
  const PayloadStats stats = payload.Stats();
  metrics_.AddDraw(group, decision, stats);
  AddFacts(payload, decision);
  if (watcher_ != nullptr) watcher_->OnGroupDrawn(group, decision, stats);
  if (writer_ == nullptr) return;
  Keep(responses_.OnGroupDrawn(plan_.step, group, decision, payload));
  Keep(writer_->WriteDecision(plan_, group, decision, stats));
  if (writer_->level() != RecordLevel::kFull) return;
  std::vector<std::vector<Segment>> segments;
  for (const FinishedTrajectory& member : payload.trained_members()) {
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

void Journal::AddFacts(const GroupTrajectories& group, const Decision& decision) {
  ++facts_.num_offered;
  if (decision.reason == Reason::kWarmingUp) facts_.warming_up = true;
  if (decision.verdict == Verdict::kReject) {
    ++facts_.num_rejected;
  } else {
    ++facts_.num_trained;
    facts_.num_equal_rewards += group.uniform() ? 1 : 0;
  }
  for (const auto& member : group.members) {
    ++facts_.num_responses;
    facts_.num_correct += member->correct ? 1 : 0;
  }
  // One response of the step is enough to look at.
  if (facts_.num_offered == 1) {
    facts_.last_response = EndOf(*group.members.front(), prompt_source_.tokenizer());
  }
}

void Journal::Warn(const std::vector<RunWarning>& warnings) {
  for (const RunWarning& warning : warnings) {
    if (writer_ != nullptr) Keep(writer_->WriteWarning(warning));
    if (watcher_ != nullptr) watcher_->OnWarning(warning.text);
  }
}

void Journal::OnGroupDropped(const GroupTrajectories& group, PolicyVersion step) {
  Warn(warnings_.OnGroupDropped(step.step(), settings_.batch.num_groups,
                                EndOf(*group.members.front(), prompt_source_.tokenizer())));
}

void Journal::Restore(const RunTotals& totals, const RunTotals& step_totals,
                      const PoolState& pool) {
  totals_ = totals;
  step_begin_ = step_totals;
  occupancy_ = pool.occupancy();
  pool_bytes_ = pool.num_bytes();
  pool_tokens_ = 0;
  for (const PooledGroup& group : pool.Save()) pool_tokens_ += group.summary.num_tokens;
}

void Journal::OnGroupEvicted(const GroupTrajectories& group) {
  --occupancy_;
  pool_bytes_ -= BytesOf(group);
  pool_tokens_ -= group.num_tokens();
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
  if (num_gpus_ > 0) totals.gpu_seconds = now.count() * static_cast<double>(num_gpus_);
  totals.num_trained_groups = totals_.num_trained_groups;
  totals.num_tokens_generated = totals_.num_tokens_generated;
  totals.num_tokens_never_trained = totals_.num_tokens_never_trained;
  totals.num_tokens_in_pool = pool_tokens_;
  totals.num_interrupted = totals_.num_interrupted - step_begin_.num_interrupted;
  totals.num_step_tokens = totals_.num_tokens_generated - step_begin_.num_tokens_generated;
  totals.pool_bytes = step_pool_bytes_;
  totals.produced = throughput.produced();
  totals.consumed = throughput.consumed();
  last_row_ = metrics_.EndStep(times, totals);
  for (const Metric& metric : training) last_row_.emplace_back(metric.name, metric.value);
  step_begin_ = totals_;
  if (writer_ != nullptr) Keep(writer_->WriteMetrics(last_row_));
  Keep(responses_.EndStep());
  facts_.num_scores = totals_.num_trained_groups;  // warming up rejects nothing
  facts_.num_skipped_updates = Find(last_row_, "train/skipped_updates").value_or(0);
  Warn(warnings_.OnStep(facts_));
}

void Journal::AddEvaluation(PolicyVersion version, const std::vector<BenchmarkScore>& scores) {
  MetricsRow row;
  for (const BenchmarkScore& score : scores) score.AppendTo(row);
  if (writer_ != nullptr) Keep(writer_->WriteEvaluation(version, clock_.Now(), row));
  Keep(responses_.OnEvaluation(version, scores));
}

}  // namespace pace
