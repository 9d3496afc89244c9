// CoordinatorSnapshot to and from JSON.
//
// Each part is described once, by a function that lists its keys with where
// they live; a Reader or a Writer walks that list. So the two directions cannot
// drift apart, and a key that is missing, unknown or doubled is an error.
#include <algorithm>
#include <limits>
#include <set>

#include "coordinator/event_json.h"
#include "coordinator/snapshot.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"

namespace pace {
namespace {

constexpr std::string_view kFormatName = "pace-coordinator";
constexpr double kLargestReal = std::numeric_limits<double>::max();

// --- values ---

void Write(JsonWriter& json, bool value) {
  json.Value(value);
}
void Write(JsonWriter& json, int64_t value) {
  json.Value(value);
}
void Write(JsonWriter& json, double value) {
  json.Value(value);
}
void Write(JsonWriter& json, PolicyVersion value) {
  json.Value(value.step());
}
template <typename Tag>
void Write(JsonWriter& json, Id<Tag> value) {
  json.Value(value.value());
}

void Read(JsonScanner& scan, bool& value) {
  scan.Bool(value);
}
void Read(JsonScanner& scan, int64_t& value) {
  scan.Integer(0, kLargestCount, "", value);
}
void Read(JsonScanner& scan, double& value) {
  scan.Real(0, kLargestReal, "", value);
}
void Read(JsonScanner& scan, PolicyVersion& value) {
  int64_t step = 0;
  Read(scan, step);
  value = PolicyVersion(step);
}
template <typename Tag>
void Read(JsonScanner& scan, Id<Tag>& value) {
  int64_t number = 0;
  Read(scan, number);
  value = Id<Tag>(number);
}

template <typename T>
void Write(JsonWriter& json, const std::optional<T>& value) {
  value.has_value() ? Write(json, *value) : json.Value(nullptr);
}
template <typename T>
void Read(JsonScanner& scan, std::optional<T>& value) {
  value.reset();
  if (!scan.TakeNull()) Read(scan, value.emplace());
}

// --- the lists of keys; `v(key, member)` for each ---

template <typename V, typename T>
void Keys(V& v, T& member)
  requires std::same_as<std::remove_const_t<T>, MemberSummary>
{
  v("completed", member.completed);
  v("oldest", member.oldest);
  v("num_tokens", member.num_tokens);
  v("generation", member.generation);
  v("prefix_score", member.prefix_score);
}
template <typename V, typename T>
void Keys(V& v, T& worker)
  requires std::same_as<std::remove_const_t<T>, WorkerRecord>
{
  v("max_groups", worker.max_groups);
  v("num_running", worker.num_running);
  v("served", worker.served);
  v("in_flight", worker.in_flight);
}
template <typename V, typename T>
void Keys(V& v, T& group)
  requires std::same_as<std::remove_const_t<T>, GroupRecord>
{
  v("state", group.state);
  v("worker", group.worker);
  v("prompt", group.prompt);
  v("attempt", group.attempt);
  v("dispatched", group.dispatched);
  v("num_finished", group.num_finished);
  v("num_bytes", group.num_bytes);
  v("members", group.members);
}
template <typename V, typename T>
void Keys(V& v, T& pooled)
  requires std::same_as<std::remove_const_t<T>, PooledGroup>
{
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
template <typename V, typename T>
void Keys(V& v, T& awaiting)
  requires std::same_as<std::remove_const_t<T>, AwaitingSync>
{
  v("needed", awaiting.needed);
  v("num_groups", awaiting.num_groups);
}
template <typename V, typename T>
void Keys(V& v, T& dispatch)
  requires std::same_as<std::remove_const_t<T>, Dispatch>
{
  v("prompt", dispatch.prompt);
  v("attempt", dispatch.attempt);
}
template <typename V, typename T>
void Keys(V& v, T& step)
  requires std::same_as<std::remove_const_t<T>, Throughput::Step>
{
  v("num_produced", step.num_produced);
  v("num_consumed", step.num_consumed);
}
template <typename V, typename T>
void Keys(V& v, T& plan)
  requires std::same_as<std::remove_const_t<T>, StepPlan>
{
  v("step", plan.step);
  v("occupancy", plan.occupancy);
  v("target_rate", plan.target_rate);
  v("smoothed_rate", plan.smoothed_rate);
  v("budget", plan.budget);
  v("cutoff", plan.cutoff);
  v("tie_probability", plan.tie_probability);
}
template <typename V, typename T>
void Keys(V& v, T& state)
  requires std::same_as<std::remove_const_t<T>, AdmissionState>
{
  v("step", state.step);
  v("smoothed_rate", state.smoothed_rate);
  v("scores", state.scores);
  v("prefix_scores", state.prefix_scores);
  v("pending_scores", state.pending_scores);
  v("pending_prefix_scores", state.pending_prefix_scores);
  v("lengths", state.lengths);
  v("pending_lengths", state.pending_lengths);
  v("strata", state.strata);
  v("plan", state.plan);
}
template <typename V, typename T>
void Keys(V& v, T& s)
  requires std::same_as<std::remove_const_t<T>, CoordinatorSnapshot>
{
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
}

// --- the two walkers ---

struct Writer {
  JsonWriter& json;
  template <typename T>
  void operator()(std::string_view key, const T& value) {
    json.Key(key);
    Put(value);
  }
  template <typename T>
  void Put(const T& value) {
    if constexpr (requires { Write(json, value); }) {
      Write(json, value);
    } else if constexpr (
        requires { value.push_back(value.front()); } || requires { value.begin(); }) {
      json.BeginArray();
      for (const auto& item : value) Put(item);
      json.EndArray();
    } else {
      json.BeginObject();
      Keys(*this, value);
      json.EndObject();
    }
  }
  void Put(const GroupState& state) { json.Value(static_cast<int64_t>(state)); }
  // An id with its record: the record's object with the id in front.
  template <typename Tag, typename Record>
  void Put(const std::pair<Id<Tag>, Record>& entry) {
    json.BeginObject();
    (*this)("id", entry.first);
    Keys(*this, entry.second);
    json.EndObject();
  }
};

// Reads the object the scanner stands before, in any order of keys.
class Reader {
 public:
  explicit Reader(JsonScanner& scan) : scan_(scan) {}

  template <typename T>
  void Get(T& value) {
    if constexpr (requires { Read(scan_, value); }) {
      Read(scan_, value);
    } else if constexpr (requires { value.emplace_back(); }) {
      scan_.EnterArray();
      while (scan_.NextItem()) Get(value.emplace_back());
    } else {
      Object([&value](auto& visit) { Keys(visit, value); });
    }
  }
  void Get(GroupState& state) {
    int64_t number = 0;
    scan_.Integer(0, static_cast<int64_t>(GroupState::kSelected), "0 running, 1 pooled, 2 selected",
                  number);
    state = static_cast<GroupState>(number);
  }
  template <typename Tag, typename Record>
  void Get(std::pair<Id<Tag>, Record>& entry) {
    Object([&entry](auto& visit) {
      visit("id", entry.first);
      Keys(visit, entry.second);
    });
  }

 private:
  // Offers the key the scanner found to a list of keys.
  struct Match {
    Reader& reader;
    std::string key;
    bool found = false;
    template <typename T>
    void operator()(std::string_view name, T& value) {
      if (found || name != key) return;
      found = true;
      reader.Get(value);
    }
  };
  struct Collect {
    std::vector<std::string_view> names;
    template <typename T>
    void operator()(std::string_view name, T&) {
      names.push_back(name);
    }
  };

  template <typename List>
  void Object(List list) {
    std::set<std::string, std::less<>> seen;
    scan_.EnterObject();
    while (scan_.NextKey()) {
      Match match{*this, std::string(scan_.key())};
      if (!seen.insert(match.key).second) {
        scan_.Fail("given twice");
        return;
      }
      list(match);
      if (scan_.ok() && !match.found) scan_.FailUnknownKey();
    }
    Collect all;
    if (scan_.ok()) list(all);
    for (const std::string_view name : all.names) {
      if (!seen.contains(name)) scan_.FailField(name, "", "missing");
    }
  }

  JsonScanner& scan_;
};

struct Envelope {
  std::string format;
  int64_t format_version = 0;
};

}  // namespace

std::string ToJson(const CoordinatorSnapshot& snapshot) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("format", kFormatName);
  json.Put("format_version", CoordinatorSnapshot::kFormatVersion);
  json.Key("coordinator");
  Writer{json}.Put(snapshot);
  json.EndObject();
  out += '\n';
  return out;
}

Result<CoordinatorSnapshot> SnapshotFromJson(std::string_view text, const std::string& name) {
  CoordinatorSnapshot snapshot;
  Envelope envelope;
  bool has_coordinator = false;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "format") {
      if (scan.Text(envelope.format) && envelope.format != kFormatName) {
        scan.FailValue(envelope.format, "must be pace-coordinator", "is this a snapshot?");
      }
    } else if (scan.key() == "format_version") {
      scan.Integer(CoordinatorSnapshot::kFormatVersion, CoordinatorSnapshot::kFormatVersion,
                   "written by another version of pace", envelope.format_version);
    } else if (scan.key() == "coordinator" && !has_coordinator) {
      has_coordinator = true;
      Reader(scan).Get(snapshot);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status().At(name);
  if (envelope.format.empty() || envelope.format_version == 0 || !has_coordinator) {
    return DataLoss(name, ": format, format_version or coordinator is missing");
  }
  for (PooledGroup& group : snapshot.pool) group.summary.members = group.members;
  return snapshot;
}

}  // namespace pace
