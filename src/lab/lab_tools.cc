// How responses of a lab run use the tool.
#include <algorithm>
#include <tuple>
#include <utility>

#include "lab/lab_driver.h"
#include "rollout/turn_count.h"

namespace pace {

// A response that rests is in no pass, so the engine's own view of it is up to date.
Status LabDriver::OnRested(MemberId id) {
  const GroupTrajectories* const group = parts_.run->store().Find(id.group);
  if (group == nullptr) return Status::Ok();  // abandoned as it came to rest
  EngineCore& core = engines_[static_cast<size_t>(group->worker.value())]->core();
  const PartialResponse* const response = core.Peek(id);
  if (response == nullptr) return Status::Ok();
  const std::optional<ToolCall> wanted = parts_.run->CallOf(*response);
  if (!wanted.has_value()) {
    const std::optional<Event> event = parts_.run->Finish(core.FinishPaused(id));
    return event.has_value() ? Handle(*event) : Status::Ok();
  }
  const int64_t turn = CountTurns(*response).assistant - 1;
  const Seconds latency = ToolLatency(settings_.workload, static_cast<uint64_t>(settings_.run.seed),
                                      group->prompt, id.member, turn);
  const Seconds now = clock_.Now();
  return MakeCall({.id = id, .made = now, .due = tool_pool_.Call(now, latency)}, *wanted);
}

Status LabDriver::MakeCall(CallInFlight call, const ToolCall& wanted) {
  PACE_ASSIGN_OR_RETURN(ToolReply reply, parts_.executor->AnswerOrFail(wanted));
  PendingCall pending{.call = call, .reply = std::move(reply)};
  const auto key = [](const PendingCall& p) { return std::tuple(p.call.due, p.call.id); };
  const auto at =
      std::upper_bound(calls_.begin(), calls_.end(), pending,
                       [&](const PendingCall& a, const PendingCall& b) { return key(a) < key(b); });
  calls_.insert(at, std::move(pending));
  return Status::Ok();
}

Status LabDriver::FinishCall() {
  const PendingCall pending = std::move(calls_.front());
  calls_.erase(calls_.begin());
  const MemberId id = pending.call.id;
  const GroupTrajectories* const group = parts_.run->store().Find(id.group);
  if (group == nullptr) return Status::Ok();  // abandoned meanwhile
  LabEngine& engine = *engines_[static_cast<size_t>(group->worker.value())];
  const Seconds took = clock_.Now() - pending.call.made;
  PACE_ASSIGN_OR_RETURN(auto tokens,
                        parts_.run->Reply(id, *engine.core().Peek(id), pending.reply, took));
  if (tokens.has_value()) {
    engine.Continue(clock_.Now(), id, *std::move(tokens));
    return Status::Ok();
  }
  const std::optional<Event> event = parts_.run->Finish(engine.core().FinishPaused(id));
  return event.has_value() ? Handle(*event) : Status::Ok();
}

Status LabDriver::RestoreCalls(const RunCheckpoint& run) {
  for (const CallInFlight& call : run.calls) {
    const GroupTrajectories& group = parts_.run->store().At(call.id.group);
    EngineCore& core = engines_[static_cast<size_t>(group.worker.value())]->core();
    const PartialResponse* const response = core.Peek(call.id);
    const std::optional<ToolCall> wanted =
        response == nullptr ? std::nullopt : parts_.run->CallOf(*response);
    if (!wanted.has_value()) {
      return DataLoss("calls: response ", call.id.member, " of group ", call.id.group,
                      " makes no call");
    }
    tool_pool_.Restore(call.due);
    PACE_RETURN_IF_ERROR(MakeCall(call, *wanted));
  }
  return Status::Ok();
}

void LabDriver::ForgetAbandonedCalls() {
  std::erase_if(calls_, [this](const PendingCall& pending) {
    return parts_.run->store().Find(pending.call.id.group) == nullptr;
  });
  tool_pool_ = ToolPool(settings_.workload.tool_concurrency);
  for (const PendingCall& pending : calls_) tool_pool_.Restore(pending.call.due);
}

}  // namespace pace
