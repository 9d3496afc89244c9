// Fuzzes the parts of a run's checkpoint and what they lead to: what is read writes the
// same bytes again, and parts that agree can be taken up.
//
// Every line is one part, its first letter says which: r(un), c(oordinator), g(roup),
// f(light), in capitals as a record of response_file.h. All behind a B is one record.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "execution/run_checkpoint.h"

namespace pace {
namespace {

void CheckOneLine(const Status& status) {
  PACE_CHECK(!status.message().empty() && status.message().find('\n') == std::string::npos,
             "an error must be one line");
}

// A group of either kind reads back from the bytes it is written as.
template <typename Group>
void CheckRecord(const Group& group) {
  std::string written;
  AppendRecord(written, group);
  Group again;
  std::string rewritten;
  PACE_CHECK(ReadRecord(written, again).ok(), "a record must read back");
  AppendRecord(rewritten, again);
  PACE_CHECK(rewritten == written, "a record must read back to the same bytes");
}

template <typename Group>
void Take(Result<Group> group, std::vector<Group>& groups) {
  if (!group.ok()) return CheckOneLine(group.status());
  CheckRecord(*group);
  groups.push_back(std::move(group).value());
}

template <typename Group>
Result<Group> FromRecord(std::string_view bytes) {
  Group group;
  PACE_RETURN_IF_ERROR(ReadRecord(bytes, group));
  return group;
}

void ReadPart(char kind, std::string_view json, RunCheckpoint& run) {
  if (kind == 'g') return Take(GroupFromJson(json), run.groups);
  if (kind == 'f') return Take(InFlightFromJson(json), run.in_flight);
  if (kind == 'G') return Take(FromRecord<GroupTrajectories>(json), run.groups);
  if (kind == 'F') return Take(FromRecord<GroupInFlight>(json), run.in_flight);
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
    for (const FinishedTrajectory& member : group.members) {
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
  // A record may hold any byte.
  if (text.starts_with('B')) {
    ReadPart('G', text.substr(1), run);
    ReadPart('F', text.substr(1), run);
    return;
  }
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
