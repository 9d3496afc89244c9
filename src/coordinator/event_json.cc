#include "coordinator/event_json.h"

#include <array>
#include <utility>

#include "core/json_record.h"
#include "core/printable.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 10> kEventNames = {
    "worker_joined",  "worker_lost",   "response_finished",   "group_failed",
    "worker_synced",  "step_finished", "evaluation_finished", "checkpoint_finished",
    "stop_requested", "run_resumed"};
static_assert(kEventNames.size() == std::variant_size_v<Event>);
constexpr std::array<std::string_view, 8> kCommandNames = {
    "start_group", "abandon_group", "sync_weights", "train_batch",
    "drop_group",  "evaluate",      "checkpoint",   "stop"};
static_assert(kCommandNames.size() == std::variant_size_v<Command>);

// An event with its name in front.
template <typename E>
struct NamedEvent {
  std::string name;
  E event;
};

}  // namespace

// --- events ---

template <typename V>
void JsonItems(V& v, Segment& segment) {
  v(segment.version);
  v(Within(segment.num_tokens, 1, kLargestTokens));
}
template <typename V>
void JsonKeys(V& v, WorkerJoined& event) {
  v("worker", event.worker);
  v("max_groups", event.max_groups);
}
template <typename V>
void JsonKeys(V& v, WorkerLost& event) {
  v("worker", event.worker);
}
template <typename V>
void JsonKeys(V& v, ResponseFinished& event) {
  v("group", event.group);
  v("member", event.member);
  v("segments", event.segments);
  v("prefix_score", event.prefix_score);
  v("num_bytes", Within(event.num_bytes, 0, kLargestBytes));
}
template <typename V>
void JsonKeys(V& v, GroupFailed& event) {
  v("group", event.group);
  v.Optional("retry", event.retry, !event.retry);
}
template <typename V>
void JsonKeys(V& v, WorkerSynced& event) {
  v("worker", event.worker);
  v("version", event.version);
}
template <typename V>
void JsonKeys(V& v, StepFinished& event) {
  v("step", event.step);
  v.Optional("seconds", event.seconds, event.seconds > 0);
  v.Optional("waited", event.waited, event.waited > 0);
  v.Optional("tokens", event.num_tokens, event.num_tokens > 0);
}
template <typename V>
void JsonKeys(V& v, EvaluationFinished& event) {
  v("version", event.version);
}
template <typename V>
void JsonKeys(V& v, CheckpointFinished& event) {
  v("step", event.step);
}
template <typename V>
void JsonKeys(V&, StopRequested&) {}
template <typename V>
void JsonKeys(V&, RunResumed&) {}
template <typename V, typename E>
void JsonKeys(V& v, NamedEvent<E>& named) {
  v("event", named.name);
  JsonKeys(v, named.event);
}

// --- commands ---

template <typename V>
void JsonKeys(V& v, StartGroup& command) {
  v("group", command.group);
  v("worker", command.worker);
  v("prompt", command.prompt);
}
template <typename V>
void JsonKeys(V& v, AbandonGroup& command) {
  v("group", command.group);
  v("keep_prefix", command.keep_prefix);
}
template <typename V>
void JsonKeys(V& v, SyncWeights& command) {
  v("worker", command.worker);
  v("version", command.version);
}
template <typename V>
void JsonKeys(V& v, TrainBatch& command) {
  v("step", command.step);
  v("groups", command.groups);
}
template <typename V>
void JsonKeys(V& v, DropGroup& command) {
  v("group", command.group);
  v("reason", Name(command.reason));
}
template <typename V>
void JsonKeys(V& v, Evaluate& command) {
  v("version", command.version);
}
template <typename V>
void JsonKeys(V& v, Checkpoint& command) {
  v("step", command.step);
}
template <typename V>
void JsonKeys(V&, Stop&) {}

namespace {

template <typename Message>
void AppendNamed(std::string& out, std::string_view key, std::string_view name,
                 const Message& message) {
  JsonWriter json(out);
  json.BeginObject();
  json.Put(key, name);
  std::visit([&json](const auto& typed) { PutJsonKeys(json, typed); }, message);
  json.EndObject();
}

// The event's name, which need not come first. Errors are found later.
std::string NameIn(std::string_view text) {
  JsonScanner scan(text);
  std::string name;
  scan.EnterObject();
  while (scan.NextKey() && scan.key() != "event") scan.Skip();
  if (scan.ok()) scan.Text(name);
  return name;
}

template <size_t... kinds>
Result<Event> ReadAs(std::string_view name, std::string_view text, std::index_sequence<kinds...>) {
  Result<Event> event = InvalidArgument("event = ", Printable(name), ": no such event");
  const auto read = [&]<size_t kind>() {
    if (kEventNames[kind] != name) return false;
    NamedEvent<std::variant_alternative_t<kind, Event>> named;
    const Status status = FromJson(text, named);
    event = status.ok() ? Result<Event>(std::move(named.event)) : Result<Event>(status);
    return true;
  };
  (void)(read.template operator()<kinds>() || ...);
  return event;
}

}  // namespace

void AppendEventJson(std::string& out, const Event& event) {
  AppendNamed(out, "event", kEventNames.at(event.index()), event);
}

Result<Event> EventFromJson(std::string_view text) {
  return ReadAs(NameIn(text), text, std::make_index_sequence<std::variant_size_v<Event>>());
}

std::string CommandToJson(const Command& command) {
  std::string out;
  AppendNamed(out, "command", kCommandNames.at(command.index()), command);
  return out;
}

}  // namespace pace
