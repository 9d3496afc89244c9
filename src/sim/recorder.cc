#include "sim/recorder.h"

#include <algorithm>

namespace pace {

Recorder::Recorder(const Settings& settings, const Workload& workload, const Clock& clock,
                   GroupStore& groups, RunWriter* writer)
    : settings_(settings),
      workload_(workload),
      clock_(clock),
      groups_(groups),
      writer_(writer),
      scores_(settings.admission.UsesPrefixScores()) {}

std::optional<double> Recorder::PrefixScore(size_t slot, ResponseIndex response) const {
  if (!scores_) return std::nullopt;
  const GroupSlot& group = groups_.slot(slot);
  return workload_.PrefixScore(group.prompt, groups_.MemberOf(response), group.drift_factor,
                               groups_.segments(response), settings_.prefix);
}

void Recorder::OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion> served) {
  plan_ = plan;
  pool_bytes_ = meter_.num_bytes();
  metrics_.BeginStep(plan);
  if (writer_ != nullptr) {
    Keep(writer_->WriteTraceStep(plan, settings_.batch.num_groups, served));
  }
}

void Recorder::OnGroupAssembled(const GroupSummary& group) {
  groups_.slot(groups_.Find(group.id)).assembled = clock_.Now();
  meter_.Arrive(clock_.Now(), group.num_bytes);
  pool_tokens_ += group.num_tokens;
}

void Recorder::OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                            std::optional<PolicyVersion> served) {
  const size_t slot = groups_.Find(group.id);
  meter_.Leave(clock_.Now(), groups_.slot(slot).assembled, group.num_bytes);
  pool_tokens_ -= group.num_tokens;
  const PayloadStats stats = groups_.Stats(slot);
  metrics_.AddDraw(group, decision, stats);
  if (writer_ == nullptr) return;
  Keep(writer_->WriteDecision(plan_, group, decision, stats));
  if (writer_->level() != RecordLevel::kFull) return;
  trace_members_.clear();
  // Members that are trained on; a greedy one is not.
  for (int64_t member = 0; member < settings_.batch.group_size; ++member) {
    const ResponseIndex index = groups_.IndexOf(slot, member);
    trace_members_.push_back({.completed = groups_.response(index).completed,
                              .segments = groups_.segments(index),
                              .prefix_score = PrefixScore(slot, index)});
  }
  Keep(writer_->WriteTraceDraw(group.id, trace_members_, served));
}

void Recorder::OnGroupEvicted(size_t slot) {
  int64_t num_bytes = 0;
  for (const Response& response : groups_.members(slot)) {
    num_bytes += ResponseBytes(response);
  }
  meter_.Leave(clock_.Now(), groups_.slot(slot).assembled, num_bytes);
  pool_tokens_ -= groups_.NumTokens(slot);
}

void Recorder::EndStep(const StepTimes& times, StepTotals totals) {
  totals.pool_bytes = pool_bytes_;
  totals.num_tokens_in_pool = pool_tokens_;
  rows_.push_back(metrics_.EndStep(times, totals));
  times_.push_back(times);
  if (writer_ != nullptr) Keep(writer_->WriteMetrics(rows_.back()));
  if (static_cast<int64_t>(rows_.size()) == settings_.run.num_steps / 2) {
    meter_.Restart(clock_.Now());
  }
}

void Recorder::Summarise(Seconds now, SimResult& result) {
  SimTotals& totals = result.totals;
  totals.pool_mean_occupancy = meter_.MeanOccupancy(now);
  totals.pool_arrival_rate = meter_.ArrivalRate(now);
  totals.pool_mean_sojourn = meter_.MeanSojourn();
  totals.num_steps = static_cast<int64_t>(rows_.size());
  totals.num_tokens_in_pool = pool_tokens_;
  const size_t begin = rows_.size() / 2;
  const auto count = static_cast<double>(std::max<size_t>(1, rows_.size() - begin));
  double offered = 0, rejected = 0, budget = 0;
  for (size_t i = begin; i < rows_.size(); ++i) {
    const auto value = [&](const char* name) { return Find(rows_[i], name).value_or(0); };
    StepTimes& mean = totals.mean_times;
    mean.step += times_[i].step / count;
    mean.wait_data += times_[i].wait_data / count;
    mean.train += times_[i].train / count;
    mean.sync += times_[i].sync / count;
    mean.rescore_visible += times_[i].rescore_visible / count;
    mean.other += times_[i].other / count;
    mean.rescore_hidden += times_[i].rescore_hidden / count;
    totals.mean_waiting += value("staleness/waiting/mean") / count;
    totals.mean_generation += value("staleness/generation/mean") / count;
    totals.mean_occupancy_at_step += value("pool/occupancy") / count;
    offered += value("admission/offered");
    rejected += value("admission/rejected");
    budget += value("admission/budget") / count;
  }
  totals.mean_step = totals.mean_times.step;
  totals.time_per_trained_prompt =
      totals.mean_step / static_cast<double>(settings_.batch.num_groups);
  totals.rejected_share = offered > 0 ? rejected / offered : 0;
  // Policies that only observe plan nothing.
  const bool filters = settings_.admission.policy != AdmissionKind::kAcceptAll;
  if (filters && !rows_.empty() && Find(rows_.back(), "admission/budget").has_value()) {
    totals.mean_budget = budget;
  }
  Seconds train{0};
  for (const StepTimes& times : times_) train += times.train;
  totals.trainer_utilisation = now > Seconds(0) ? train / now : 0;
  result.rows = std::move(rows_);
}

}  // namespace pace
