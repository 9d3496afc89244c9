#include "sim/recorder.h"

#include <algorithm>

namespace pace {

Recorder::Recorder(const Settings& settings, const Workload& workload, const Clock& clock,
                   GroupStore& groups, RunWriter* writer)
    : Journal(settings, writer),
      workload_(workload),
      clock_(clock),
      groups_(groups),
      scores_(settings.admission.UsesPrefixScores()) {}

std::optional<double> Recorder::PrefixScore(size_t slot, ResponseIndex response) const {
  if (!scores_) return std::nullopt;
  const GroupSlot& group = groups_.slot(slot);
  return workload_.PrefixScore(group.prompt, groups_.MemberOf(response), group.drift_factor,
                               groups_.segments(response), settings_.prefix);
}

void Recorder::OnGroupAssembled(const GroupSummary& group) {
  groups_.slot(groups_.Find(group.id)).assembled = clock_.Now();
  meter_.Arrive(clock_.Now());
}

void Recorder::OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                            std::optional<PolicyVersion> served) {
  Leave(group.id);
  Journal::OnGroupDrawn(group, decision, served);
}

void Recorder::Leave(GroupId group) {
  meter_.Leave(clock_.Now(), groups_.slot(groups_.Find(group)).assembled);
}

void Recorder::AppendMembers(GroupId group, std::vector<TraceMember>& out) {
  const size_t slot = groups_.Find(group);
  // A greedy member is not trained on.
  for (int64_t member = 0; member < settings_.batch.group_size; ++member) {
    const ResponseIndex index = groups_.IndexOf(slot, member);
    out.push_back({.completed = groups_.response(index).completed,
                   .segments = groups_.segments(index),
                   .prefix_score = PrefixScore(slot, index)});
  }
}

void Recorder::EndStep(const StepTimes& times, const StepTotals& totals,
                       const Coordinator& coordinator) {
  rows_.push_back(Journal::EndStep(times, totals, coordinator));
  times_.push_back(times);
  if (static_cast<int64_t>(rows_.size()) == settings_.run.num_steps / 2) {
    meter_.Restart(clock_.Now());
  }
}

void Recorder::OnCheckpoint(PolicyVersion step, const Coordinator& coordinator) {
  if (writer_ == nullptr || writer_->level() != RecordLevel::kFull) return;
  Keep(writer_->WriteSnapshot(step, ToJson(coordinator.Save())));
}

void Recorder::Summarise(const Coordinator& coordinator, SimResult& result) {
  const Seconds now = clock_.Now();
  SimTotals& totals = result.totals;
  totals.pool_mean_occupancy = meter_.MeanOccupancy(now);
  totals.pool_arrival_rate = meter_.ArrivalRate(now);
  totals.pool_mean_sojourn = meter_.MeanSojourn();
  totals.num_steps = static_cast<int64_t>(rows_.size());
  totals.num_tokens_in_pool = coordinator.pool().num_tokens();
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
