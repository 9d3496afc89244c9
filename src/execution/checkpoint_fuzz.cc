// Fuzzes the JSON parts of a run's checkpoint and what they lead to: what is read
// writes the same text again, and parts that agree can be taken up.
//
// Every line is one part, its first letter says which: r(un), c(oordinator), g(roup),
// f(light).
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "execution/checkpoint.h"

namespace pace {
namespace {

void CheckOneLine(const Status& status) {
  PACE_CHECK(!status.message().empty() && status.message().find('\n') == std::string::npos,
             "an error must be one line");
}

void ReadGroup(std::string_view json, RunCheckpoint& run) {
  Result<GroupTrajectories> group = GroupFromJson(json);
  if (!group.ok()) return CheckOneLine(group.status());
  const std::string written = GroupToJson(*group);
  const Result<GroupTrajectories> again = GroupFromJson(written);
  PACE_CHECK(again.ok() && GroupToJson(*again) == written, "a group must read back");
  run.groups.push_back(std::move(group).value());
}

void ReadInFlight(std::string_view json, RunCheckpoint& run) {
  Result<GroupInFlight> group = InFlightFromJson(json);
  if (!group.ok()) return CheckOneLine(group.status());
  const std::string written = InFlightToJson(*group);
  const Result<GroupInFlight> again = InFlightFromJson(written);
  PACE_CHECK(again.ok() && InFlightToJson(*again) == written, "a response must read back");
  run.in_flight.push_back(std::move(group).value());
}

void ReadPart(char kind, std::string_view json, RunCheckpoint& run) {
  if (kind == 'g') return ReadGroup(json, run);
  if (kind == 'f') return ReadInFlight(json, run);
  if (kind == 'r') {
    const Status status = RunFromJson(json, run);
    if (!status.ok()) CheckOneLine(status);
    return;
  }
  if (kind != 'c') return;
  Result<CoordinatorSnapshot> snapshot = SnapshotFromJson(json, "coordinator.json");
  if (!snapshot.ok()) return CheckOneLine(snapshot.status());
  run.coordinator = std::move(snapshot).value();
}

// As a run does that goes on.
void TakeUp(const RunCheckpoint& run) {
  TrajectoryStore store;
  for (const GroupTrajectories& group : run.groups) store.Begin(group);
  for (const auto& [id, record] : run.coordinator.groups) {
    const GroupTrajectories& group = store.At(id);
    for (const std::optional<Trajectory>& member : group.members) {
      if (member.has_value()) MemberSummary::Of(member->Segments(), member->completed, {});
    }
    if (record.state == GroupState::kRunning) continue;
    group.Stats();
    std::vector<TrainSequence> sequences;
    group.AppendTo(sequences);
  }
  for (const GroupInFlight& group : run.in_flight) {
    for (const int64_t member : group.members) store.Finish({group.group, member}, Trajectory{});
    PACE_CHECK(store.At(group.group).complete(), "a running group must come to an end");
  }
}

void Fuzz(std::string_view text) {
  RunCheckpoint run;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.empty()) ReadPart(line[0], line.substr(1), run);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  const Status status = CheckAgreement(run);
  if (!status.ok()) return CheckOneLine(status);
  TakeUp(run);
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pace::Fuzz(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
