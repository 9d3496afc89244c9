#include "coordinator/event_json.h"

#include <array>
#include <limits>
#include <optional>

#include "core/printable.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 10> kEventNames = {
    "worker_joined",  "worker_lost",   "response_finished",   "group_failed",
    "worker_synced",  "step_finished", "evaluation_finished", "checkpoint_finished",
    "stop_requested", "run_resumed"};
static_assert(kEventNames.size() == std::variant_size_v<Event>);

// Every key any event has.
struct Keys {
  std::optional<int64_t> worker, max_groups, group, member, num_bytes, version, step;
  std::optional<std::vector<Segment>> segments;
  bool has_prefix_score = false;
  std::optional<double> prefix_score;
  std::optional<bool> retry;
};

void ScanCount(JsonScanner& scan, int64_t largest, std::optional<int64_t>& out) {
  int64_t value = 0;
  if (out.has_value()) {
    scan.Fail("given twice");
  } else if (scan.Integer(0, largest, "", value)) {
    out = value;
  }
}

bool ScanKey(JsonScanner& scan, Keys& keys) {
  const std::string_view key = scan.key();
  const std::array<std::pair<std::string_view, std::optional<int64_t>*>, 7> counts = {{
      {"worker", &keys.worker},
      {"max_groups", &keys.max_groups},
      {"group", &keys.group},
      {"member", &keys.member},
      {"num_bytes", &keys.num_bytes},
      {"version", &keys.version},
      {"step", &keys.step},
  }};
  for (const auto& [name, value] : counts) {
    if (key != name) continue;
    ScanCount(scan, value == &keys.num_bytes ? kLargestBytes : kLargestCount, *value);
    return true;
  }
  if (key == "segments") {
    if (keys.segments.has_value()) return scan.Fail("given twice"), true;
    ScanSegments(scan, keys.segments.emplace());
    return true;
  }
  if (key == "retry") {
    if (keys.retry.has_value()) return scan.Fail("given twice"), true;
    scan.Bool(keys.retry.emplace());
    return true;
  }
  if (key == "prefix_score") {
    if (keys.has_prefix_score) return scan.Fail("given twice"), true;
    keys.has_prefix_score = true;
    if (scan.TakeNull()) return true;
    scan.Real(0, std::numeric_limits<double>::max(), "", keys.prefix_score.emplace());
    return true;
  }
  return false;
}

// Takes each key the event needs; what is left over does not belong to it.
class KeyTaker {
 public:
  explicit KeyTaker(Keys& keys) : keys_(keys) {}

  int64_t Take(std::optional<int64_t> Keys::* member, std::string_view name) {
    std::optional<int64_t>& value = keys_.*member;
    if (!value.has_value()) {
      if (missing_.empty()) missing_ = name;
      return 0;
    }
    const int64_t taken = *value;
    value.reset();
    return taken;
  }
  std::vector<Segment> TakeSegments() {
    if (!keys_.segments.has_value()) {
      if (missing_.empty()) missing_ = "segments";
      return {};
    }
    std::vector<Segment> taken = std::move(*keys_.segments);
    keys_.segments.reset();
    return taken;
  }
  std::optional<double> TakePrefixScore() {
    if (!keys_.has_prefix_score && missing_.empty()) missing_ = "prefix_score";
    keys_.has_prefix_score = false;
    return keys_.prefix_score;
  }

  // May be left out.
  bool TakeRetry() {
    const bool taken = keys_.retry.value_or(true);
    keys_.retry.reset();
    return taken;
  }

  Status Finish(std::string_view event) const {
    if (!missing_.empty()) return InvalidArgument(missing_, ": missing from ", event);
    const bool left_over = keys_.worker || keys_.max_groups || keys_.group || keys_.member ||
                           keys_.num_bytes || keys_.version || keys_.step || keys_.segments ||
                           keys_.has_prefix_score || keys_.retry;
    if (left_over) return InvalidArgument("event = ", event, ": has a key that is not its own");
    return Status::Ok();
  }

 private:
  Keys& keys_;
  std::string_view missing_;
};

Event Build(size_t kind, KeyTaker& take) {
  switch (kind) {
    case 0: {
      const WorkerId worker(take.Take(&Keys::worker, "worker"));
      return WorkerJoined{worker, take.Take(&Keys::max_groups, "max_groups")};
    }
    case 1:
      return WorkerLost{WorkerId(take.Take(&Keys::worker, "worker"))};
    case 2: {
      ResponseFinished event;
      event.group = GroupId(take.Take(&Keys::group, "group"));
      event.member = take.Take(&Keys::member, "member");
      event.segments = take.TakeSegments();
      event.prefix_score = take.TakePrefixScore();
      event.num_bytes = take.Take(&Keys::num_bytes, "num_bytes");
      return event;
    }
    case 3:
      return GroupFailed{GroupId(take.Take(&Keys::group, "group")), take.TakeRetry()};
    case 4: {
      const WorkerId worker(take.Take(&Keys::worker, "worker"));
      return WorkerSynced{worker, PolicyVersion(take.Take(&Keys::version, "version"))};
    }
    case 5:
      return StepFinished{PolicyVersion(take.Take(&Keys::step, "step"))};
    case 6:
      return EvaluationFinished{PolicyVersion(take.Take(&Keys::version, "version"))};
    case 7:
      return CheckpointFinished{PolicyVersion(take.Take(&Keys::step, "step"))};
    case 8:
      return StopRequested{};
    default:
      return RunResumed{};
  }
}

void PutFields(JsonWriter& json, const WorkerJoined& event) {
  json.Put("worker", event.worker.value());
  json.Put("max_groups", event.max_groups);
}
void PutFields(JsonWriter& json, const WorkerLost& event) {
  json.Put("worker", event.worker.value());
}
void PutFields(JsonWriter& json, const ResponseFinished& event) {
  json.Put("group", event.group.value());
  json.Put("member", event.member);
  json.Key("segments");
  PutSegments(json, event.segments);
  json.Put("prefix_score", event.prefix_score);
  json.Put("num_bytes", event.num_bytes);
}
void PutFields(JsonWriter& json, const GroupFailed& event) {
  json.Put("group", event.group.value());
  if (!event.retry) json.Put("retry", false);
}
void PutFields(JsonWriter& json, const WorkerSynced& event) {
  json.Put("worker", event.worker.value());
  json.Put("version", event.version.step());
}
void PutFields(JsonWriter& json, const StepFinished& event) {
  json.Put("step", event.step.step());
}
void PutFields(JsonWriter& json, const EvaluationFinished& event) {
  json.Put("version", event.version.step());
}
void PutFields(JsonWriter& json, const CheckpointFinished& event) {
  json.Put("step", event.step.step());
}
void PutFields(JsonWriter&, const StopRequested&) {}
void PutFields(JsonWriter&, const RunResumed&) {}

void PutCommand(JsonWriter& json, const StartGroup& command) {
  json.Put("command", "start_group");
  json.Put("group", command.group.value());
  json.Put("worker", command.worker.value());
  json.Put("prompt", command.prompt.value());
}
void PutCommand(JsonWriter& json, const AbandonGroup& command) {
  json.Put("command", "abandon_group");
  json.Put("group", command.group.value());
  json.Put("keep_prefix", command.keep_prefix);
}
void PutCommand(JsonWriter& json, const SyncWeights& command) {
  json.Put("command", "sync_weights");
  json.Put("worker", command.worker.value());
  json.Put("version", command.version.step());
}
void PutCommand(JsonWriter& json, const TrainBatch& command) {
  json.Put("command", "train_batch");
  json.Put("step", command.step.step());
  json.Key("groups");
  json.BeginArray();
  for (const GroupId group : command.groups) json.Value(group.value());
  json.EndArray();
}
void PutCommand(JsonWriter& json, const DropGroup& command) {
  json.Put("command", "drop_group");
  json.Put("group", command.group.value());
  json.Put("reason", Name(command.reason));
}
void PutCommand(JsonWriter& json, const Evaluate& command) {
  json.Put("command", "evaluate");
  json.Put("version", command.version.step());
}
void PutCommand(JsonWriter& json, const Checkpoint& command) {
  json.Put("command", "checkpoint");
  json.Put("step", command.step.step());
}
void PutCommand(JsonWriter& json, const Stop&) {
  json.Put("command", "stop");
}

}  // namespace

void PutSegments(JsonWriter& json, std::span<const Segment> segments) {
  json.BeginArray();
  for (const Segment& segment : segments) {
    json.BeginArray();
    json.Value(segment.version.step());
    json.Value(segment.num_tokens);
    json.EndArray();
  }
  json.EndArray();
}

bool ScanSegments(JsonScanner& scan, std::vector<Segment>& segments) {
  scan.EnterArray();
  while (scan.NextItem()) {
    int64_t version = 0;
    int64_t num_tokens = 0;
    int64_t count = 0;
    scan.EnterArray();
    while (scan.NextItem()) {
      if (count == 0) scan.Integer(0, kLargestCount, "", version);
      if (count == 1) scan.Integer(1, kLargestTokens, "", num_tokens);
      if (++count > 2) scan.Fail("must be [version, tokens]");
    }
    if (scan.ok() && count < 2) scan.Fail("must be [version, tokens]");
    segments.push_back({PolicyVersion(version), num_tokens});
  }
  return scan.ok();
}

void AppendEventJson(std::string& out, const Event& event) {
  JsonWriter json(out);
  json.BeginObject();
  json.Put("event", kEventNames.at(event.index()));
  std::visit([&json](const auto& typed) { PutFields(json, typed); }, event);
  json.EndObject();
}

Result<Event> EventFromJson(std::string_view text) {
  JsonScanner scan(text);
  std::string name;
  Keys keys;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "event") {
      if (!name.empty()) {
        scan.Fail("given twice");
      } else {
        scan.Text(name);
      }
    } else if (!ScanKey(scan, keys)) {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  for (size_t kind = 0; kind < kEventNames.size(); ++kind) {
    if (kEventNames[kind] != name) continue;
    KeyTaker take(keys);
    Event event = Build(kind, take);
    PACE_RETURN_IF_ERROR(take.Finish(name));
    return event;
  }
  return InvalidArgument("event = ", Printable(name), ": no such event");
}

std::string CommandToJson(const Command& command) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  std::visit([&json](const auto& typed) { PutCommand(json, typed); }, command);
  json.EndObject();
  return out;
}

}  // namespace pace
