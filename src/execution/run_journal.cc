#include "execution/run_journal.h"

#include <utility>

#include "config/methods.h"
#include "execution/evaluator.h"
#include "execution/prompt_source.h"
#include "execution/run.h"
#include "rollout/turn_count.h"
#include "train/advantage/advantages.h"

namespace pace {
namespace {

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

RunJournal::RunJournal(const Settings& settings, const PromptSource& prompt_source,
                       const Clock& clock, const TrajectoryStore& store, RunWriter* writer,
                       RunObserver* observer)
    : Journal(settings, writer),
      prompt_source_(prompt_source),
      clock_(clock),
      store_(store),
      observer_(observer),
      responses_(settings, prompt_source, writer),
      warnings_(WarningOptionsOf(settings, prompt_source)),
      num_gpus_(settings.cluster.AllGpus()) {}

void RunJournal::OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion> served,
                             const PoolState& pool) {
  facts_ = {.step = plan.step.step(), .budget = plan.budget};
  Journal::OnStepBegan(plan, served, pool);
}

void RunJournal::OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                              std::optional<PolicyVersion> served) {
  const GroupTrajectories& payload = store_.At(group.id);
  AddFacts(payload, decision);
  if (observer_ != nullptr) observer_->OnGroupDrawn(group, decision, payload.Stats());
  if (writer_ != nullptr) {
    Keep(responses_.OnGroupDrawn(plan_.step, group, decision, payload));
  }
  Journal::OnGroupDrawn(group, decision, served);
}

void RunJournal::AppendMembers(GroupId group, std::vector<TraceMember>& out) {
  const std::span<const FinishedTrajectory> members = store_.At(group).trained_members();
  segments_.clear();
  for (const FinishedTrajectory& member : members) segments_.push_back(member->Segments());
  const bool scores = settings_.admission.UsesPrefixScores();
  for (size_t i = 0; i < members.size(); ++i) {
    out.push_back({.completed = members[i]->completed,
                   .segments = segments_[i],
                   .prefix_score = scores ? members[i]->response.prefix_score : std::nullopt});
  }
}

void RunJournal::AddFacts(const GroupTrajectories& group, const Decision& decision) {
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

void RunJournal::Warn(const std::vector<RunWarning>& warnings) {
  for (const RunWarning& warning : warnings) {
    if (writer_ != nullptr) Keep(writer_->WriteWarning(warning));
    if (observer_ != nullptr) observer_->OnWarning(warning.text);
  }
}

void RunJournal::OnGroupDropped(const GroupTrajectories& group, PolicyVersion step) {
  Warn(warnings_.OnGroupDropped(step.step(), settings_.batch.num_groups,
                                EndOf(*group.members.front(), prompt_source_.tokenizer())));
}

void RunJournal::OnFailedReward(PolicyVersion step, const std::string& text, bool last) {
  Warn(warnings_.OnFailedReward(step.step(), text, last));
}

void RunJournal::Restore(const RunTotals& totals, const RunTotals& step_totals,
                         const RunWarnings::State& warnings, const UnderWay& under_way) {
  totals_ = totals;
  step_begin_ = step_totals;
  warnings_.Restore(warnings);
  Journal::Restore(under_way.journal);
  facts_ = under_way.facts;
}

void RunJournal::OnResponse(const GroupTrajectories& group, int64_t member,
                            std::string_view detail) {
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
                              .tool_time = tools.time,
                              .detail = detail}));
}

MetricsRow RunJournal::EndStep(const StepTimes& times, const Coordinator& coordinator,
                               const MetricList& training) {
  const Seconds now = clock_.Now();
  StepTotals totals;
  totals.time = now;
  if (num_gpus_ > 0) totals.gpu_seconds = now.count() * static_cast<double>(num_gpus_);
  totals.num_trained_groups = totals_.num_trained_groups;
  totals.num_tokens_generated = totals_.num_tokens_generated;
  totals.num_tokens_never_trained = totals_.num_tokens_never_trained;
  totals.num_interrupted = totals_.num_interrupted - step_begin_.num_interrupted;
  totals.num_step_tokens = totals_.num_tokens_generated - step_begin_.num_tokens_generated;
  MetricsRow metrics;
  for (const Metric& metric : training) metrics.emplace_back(metric.name, metric.value);
  MetricsRow row = Journal::EndStep(times, totals, coordinator, metrics);
  step_begin_ = totals_;
  Keep(responses_.EndStep());
  facts_.num_scores = totals_.num_trained_groups;  // warming up rejects nothing
  facts_.num_skipped_updates = Find(row, "train/skipped_updates").value_or(0);
  Warn(warnings_.OnStep(facts_));
  return row;
}

void RunJournal::AddEvaluation(PolicyVersion version, const std::vector<BenchmarkScore>& scores) {
  MetricsRow row;
  for (const BenchmarkScore& score : scores) score.AppendTo(row);
  if (writer_ != nullptr) Keep(writer_->WriteEvaluation(version, clock_.Now(), row));
  Keep(responses_.OnEvaluation(version, scores));
}

}  // namespace pace
