// Fuzzes the readers of events and snapshots, and what they lead to: accepted
// events go through a coordinator whose invariants must hold, an accepted
// snapshot must restore or be refused with one line.
#include <cstdint>
#include <memory>
#include <string_view>

#include "control/supply_policies.h"
#include "coordinator/coordinator.h"
#include "coordinator/event_json.h"
#include "core/check.h"

namespace pace {
namespace {

std::unique_ptr<Coordinator> Make() {
  AdmissionOptions admission;
  admission.min_observations = 2;
  admission.window = 8;
  return std::make_unique<Coordinator>(
      CoordinatorOptions{.batch = 2, .group_size = 2, .num_steps = 50},
      MakeAdmissionPolicy(admission, 2, 1), std::make_unique<ThresholdSupply>(12));
}

void CheckOneLine(const Status& status) {
  PACE_CHECK(!status.message().empty() && status.message().find('\n') == std::string::npos,
             "an error must be one line");
}

void PlayEvents(std::string_view text) {
  const auto coordinator = Make();
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const Result<Event> event = EventFromJson(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    if (!event.ok()) {
      CheckOneLine(event.status());
    } else if (const Status status = coordinator->Validate(*event); !status.ok()) {
      CheckOneLine(status);
    } else {
      coordinator->Handle(*event);
      coordinator->CheckInvariants();
    }
  }
}

void RestoreSnapshot(std::string_view text) {
  const auto snapshot = SnapshotFromJson(text, "snapshot");
  if (!snapshot.ok()) return CheckOneLine(snapshot.status());
  const auto coordinator = Make();
  const Status status = coordinator->Restore(*snapshot);
  if (!status.ok()) return CheckOneLine(status);
  coordinator->CheckInvariants();
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("{\"format\"")) {
    pace::RestoreSnapshot(text);
  } else {
    pace::PlayEvents(text);
  }
  return 0;
}
