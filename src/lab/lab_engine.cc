#include "lab/lab_engine.h"

#include <algorithm>
#include <utility>

namespace pace {

LabEngine::LabEngine(const CostModel& costs, const LabEngineOptions& options,
                     std::unique_ptr<EngineCore> core)
    : costs_(costs), options_(options), core_(std::move(core)) {}

void LabEngine::Submit(Seconds now, GroupRequest request) {
  Add(now, std::move(request));
}

void LabEngine::Sync(Seconds now, PolicyVersion version,
                     std::shared_ptr<const DecoderWeights> weights) {
  Add(now, SyncCommand{version, std::move(weights)});
}

void LabEngine::Cancel(Seconds now, GroupId group) {
  Add(now, CancelCommand{group});
}

void LabEngine::Continue(Seconds now, MemberId id, std::vector<TokenId> given) {
  Add(now, ContinueCommand{id, std::move(given)});
}

void LabEngine::Add(Seconds now, Command command) {
  commands_.push_back(std::move(command));
  if (!next_time_.has_value()) next_time_ = now;
}

void LabEngine::Resume(Seconds now) {
  paused_ = false;
  if (!next_time_.has_value() && core_->busy()) next_time_ = now;
}

Result<LabReport> LabEngine::Act() {
  LabReport report;
  const Seconds now = *next_time_;
  next_time_.reset();
  if (transferring_.has_value()) {
    PACE_RETURN_IF_ERROR(core_->Sync(transferring_->version, std::move(transferring_->weights)));
    if (core_->version() == transferring_->version) report.synced = transferring_->version;
    transferring_.reset();
  }
  if (pass_.has_value()) {
    report.finished = std::move(pass_->finished);
    report.paused = std::move(pass_->paused);
    num_tokens_ += static_cast<int64_t>(pass_->sampled.size());
    if (pass_->synced.has_value()) report.synced = pass_->synced;
    pass_.reset();
  }
  next_time_ = now;
  PACE_RETURN_IF_ERROR(TakeCommands(report));
  if (transferring_.has_value()) return report;
  if (paused_ || !core_->busy()) {
    next_time_.reset();
    return report;
  }
  PACE_RETURN_IF_ERROR(BeginPass());
  return report;
}

Status LabEngine::TakeCommands(LabReport& report) {
  while (!commands_.empty()) {
    Command command = std::move(commands_.front());
    commands_.pop_front();
    if (auto* request = std::get_if<GroupRequest>(&command)) {
      PACE_RETURN_IF_ERROR(core_->Submit(std::move(*request)));
    } else if (const auto* cancel = std::get_if<CancelCommand>(&command)) {
      (void)core_->Cancel(cancel->group);
    } else if (const auto* reply = std::get_if<ContinueCommand>(&command)) {
      // Its group may have been cancelled meanwhile.
      if (core_->Peek(reply->id) == nullptr) continue;
      PACE_RETURN_IF_ERROR(core_->Continue(reply->id, reply->given));
    } else {
      auto& sync = std::get<SyncCommand>(command);
      const Seconds transfer(costs_.SyncSeconds());
      if (transfer > Seconds(0)) {
        transferring_ = std::move(sync);
        *next_time_ += transfer;
        return Status::Ok();
      }
      PACE_RETURN_IF_ERROR(core_->Sync(sync.version, std::move(sync.weights)));
      if (core_->version() == sync.version) report.synced = sync.version;
    }
  }
  return Status::Ok();
}

Status LabEngine::BeginPass() {
  PACE_ASSIGN_OR_RETURN(StepReport pass, core_->Step());
  const Seconds cost = CostOf(pass);
  *next_time_ += cost;
  busy_time_ += cost;
  pass_ = std::move(pass);
  return Status::Ok();
}

Seconds LabEngine::CostOf(const StepReport& pass) {
  double seconds = 0;
  if (pass.num_decode_rows > 0) {
    const int64_t batch = std::min(pass.num_decode_rows, options_.max_batch);
    seconds += costs_.Decode(batch).Iteration(pass.num_decode_context_tokens);
  }
  const auto rows = static_cast<double>(pass.num_prefill_rows);
  const auto pairs = static_cast<double>(pass.num_context_tokens - pass.num_decode_context_tokens);
  if (rows > 0) seconds += costs_.PrefillSeconds({.tokens = rows, .pairs = pairs});
  if (options_.charge_rescoring && pass.num_scored_rows > 0) {
    const double rescoring =
        costs_.RescoreSeconds(static_cast<double>(pass.num_scored_rows), PassSize{});
    rescore_time_ += Seconds(rescoring);
    seconds += rescoring;
  }
  return Seconds(seconds);
}

}  // namespace pace
