// CoordinatorSnapshot to and from JSON.
#include "control/admission_json.h"
#include "coordinator/snapshot.h"
#include "core/json_record.h"
#include "core/printable.h"

namespace pace {
template <typename V>
void JsonKeys(V& v, MemberSummary& member) {
  v("completed", member.completed);
  v("oldest", member.oldest);
  v("num_tokens", member.num_tokens);
  v("generation", member.generation);
  v("prefix_score", member.prefix_score);
}
template <typename V>
void JsonKeys(V& v, WorkerRecord& worker) {
  v("max_groups", worker.max_groups);
  v("num_running", worker.num_running);
  v("served", worker.served);
  v("in_flight", worker.in_flight);
}
template <typename V>
void JsonKeys(V& v, GroupRecord& group) {
  v("state", AsNumber(group.state, GroupState::kSelected, "0 running, 1 pooled, 2 selected"));
  v("worker", group.worker);
  v("prompt", group.prompt);
  v("attempt", group.attempt);
  v("dispatched", group.dispatched);
  v("num_finished", group.num_finished);
  v("num_bytes", group.num_bytes);
  v("members", group.members);
}
template <typename V>
void JsonKeys(V& v, PooledGroup& pooled) {
  v("id", pooled.summary.id);
  v("assembled", pooled.summary.assembled);
  v("oldest", pooled.summary.oldest);
  v("num_members", pooled.summary.num_members);
  v("completed_sum", pooled.summary.completed_sum);
  v("num_tokens", pooled.summary.num_tokens);
  v("num_bytes", pooled.summary.num_bytes);
  v("generation", pooled.summary.generation);
  v("prefix_score", pooled.summary.prefix_score);
  v("stalest_completed", pooled.summary.stalest_completed);
  v("stalest_generation", pooled.summary.stalest_generation);
  v("members", pooled.members);
}
template <typename V>
void JsonKeys(V& v, AwaitingSync& awaiting) {
  v("needed", awaiting.needed);
  v("num_groups", awaiting.num_groups);
}
template <typename V>
void JsonKeys(V& v, Dispatch& dispatch) {
  v("prompt", dispatch.prompt);
  v("attempt", dispatch.attempt);
}
template <typename V>
void JsonKeys(V& v, Throughput::Step& step) {
  v("num_produced", step.num_produced);
  v("num_consumed", step.num_consumed);
}
template <typename V>
void JsonKeys(V& v, SupplyState& state) {
  v("limit", state.limit);
  v("owed", state.owed);
  v("wait", state.wait);
  v("balances", state.balances);
  v("num_steps", state.num_steps);
  v("num_blocks", state.num_blocks);
  v("num_measured", state.num_measured);
  v("num_samples", state.num_samples);
  v("sum_running", state.sum_running);
  v("sum_tokens", state.sum_tokens);
  v("sum_seconds", state.sum_seconds);
  v("running", state.running);
  v("throughput", state.throughput);
  v("trial_from", state.trial_from);
  v("trial_running", state.trial_running);
  v("trial_throughput", state.trial_throughput);
  v("gain", state.gain);
  v("gain_middle", state.gain_middle);
  v("ceiling", state.ceiling);
  v("ceiling_throughput", state.ceiling_throughput);
}
template <typename V>
void JsonKeys(V& v, CoordinatorSnapshot& s) {
  v("batch", s.batch);
  v("group_size", s.group_size);
  v("sync_interval", s.sync_interval);
  v("num_events", s.num_events);
  v("version", s.version);
  v("published", s.published);
  v("started", s.started);
  v("gathering", s.gathering);
  v("training", s.training);
  v("checkpointing", s.checkpointing);
  v("stop_requested", s.stop_requested);
  v("final_checkpoint_done", s.final_checkpoint_done);
  v("stopped", s.stopped);
  v("evaluating", s.evaluating);
  v("num_offered", s.num_offered);
  v("num_rejected_in_step", s.num_rejected_in_step);
  v("num_guarded", s.num_guarded);
  v("num_trained", s.num_trained);
  v("num_rejected", s.num_rejected);
  v("num_lost", s.num_lost);
  v("workers", s.workers);
  v("next_group", s.next_group);
  v("groups", s.groups);
  v("selected", s.selected);
  v("awaiting_sync", s.awaiting_sync);
  v("pool", s.pool);
  v("next_prompt", s.next_prompt);
  v("resumed_prompts", s.resumed_prompts);
  v("returned_prompts", s.returned_prompts);
  v("throughput", s.throughput);
  v("current_throughput", s.current_throughput);
  v("admission", s.admission);
  v.Optional("supply", s.supply, s.supply.limit > 0);
  v.Optional("supply_limited", s.supply_limited, s.supply.limit > 0);
}

// An id with its record: the record's object with the id in front.
template <typename V, typename Tag, typename Record>
void JsonKeys(V& v, std::pair<Id<Tag>, Record>& entry) {
  v("id", entry.first);
  JsonKeys(v, entry.second);
}
namespace {

constexpr std::string_view kFormatName = "pace-coordinator";

// The whole text.
struct SnapshotText {
  std::string format = std::string(kFormatName);
  int64_t format_version = CoordinatorSnapshot::kFormatVersion;
  CoordinatorSnapshot coordinator = {};
};

template <typename V>
void JsonKeys(V& v, SnapshotText& text) {
  v("format", text.format);
  v("format_version",
    Within(text.format_version, CoordinatorSnapshot::kFormatVersion,
           CoordinatorSnapshot::kFormatVersion, "written by another version of pace"));
  v("coordinator", text.coordinator);
}

}  // namespace

std::string ToJson(const CoordinatorSnapshot& snapshot) {
  return JsonOf(SnapshotText{.coordinator = snapshot}) + "\n";
}

Result<CoordinatorSnapshot> SnapshotFromJson(std::string_view text, const std::string& name) {
  SnapshotText read;
  PACE_RETURN_IF_ERROR(FromJson(text, read).At(name));
  if (read.format != kFormatName) {
    return InvalidArgument(name, ": format = ", Printable(read.format),
                           ": must be pace-coordinator (is this a snapshot?)");
  }
  for (PooledGroup& group : read.coordinator.pool) group.summary.members = group.members;
  return std::move(read.coordinator);
}

}  // namespace pace
