#include "record/journal.h"

#include "coordinator/event_json.h"

namespace pace {

void Journal::OnEvent(const Event& event) {
  if (writer_ == nullptr || writer_->level() != RecordLevel::kFull) return;
  json_.clear();
  AppendEventJson(json_, event);
  Keep(writer_->WriteEvent(json_));
}

void Journal::OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion> served,
                          const PoolState& pool) {
  plan_ = plan;
  pool_bytes_ = pool.num_bytes();
  metrics_.BeginStep(plan);
  if (writer_ != nullptr) Keep(writer_->WriteTraceStep(plan, settings_.batch.num_groups, served));
}

void Journal::OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                           std::optional<PolicyVersion> served) {
  const PayloadStats stats = StatsOf(group.id);
  metrics_.AddDraw(group, decision, stats);
  if (writer_ == nullptr) return;
  Keep(writer_->WriteDecision(plan_, group, decision, stats));
  if (writer_->level() != RecordLevel::kFull) return;
  members_.clear();
  AppendMembers(group.id, members_);
  Keep(writer_->WriteTraceDraw(group.id, members_, served));
}

void Journal::Restore(const State& state) {
  plan_ = state.drawn.plan;
  pool_bytes_ = state.pool_bytes;
  metrics_.Restore(state.drawn);
}

MetricsRow Journal::EndStep(const StepTimes& times, StepTotals totals,
                            const Coordinator& coordinator, const MetricsRow& training) {
  totals.pool_bytes = pool_bytes_;
  totals.supply_limit = coordinator.supply_limit();
  totals.num_tokens_in_pool = coordinator.pool().num_tokens();
  totals.produced = coordinator.throughput().produced();
  totals.consumed = coordinator.throughput().consumed();
  MetricsRow row = metrics_.EndStep(times, totals);
  row.insert(row.end(), training.begin(), training.end());
  if (writer_ != nullptr) Keep(writer_->WriteMetrics(row));
  return row;
}

}  // namespace pace
