// Any bytes are a line of a trace, of decisions, of metrics or evaluations, or a
// manifest: they are read or refused, in one line, without a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "record/run_reader.h"
#include "record/trace_reader.h"

namespace pace {
namespace {

void CheckMessage(const Status& status) {
  PACE_CHECK(status.ok() || (!status.message().empty() && status.message().size() < 1000 &&
                             status.message().find('\n') == std::string::npos),
             status.message());
}

// What the reader lets through must meet the preconditions of those it feeds.
void CheckGroup(const TraceGroup& group) {
  std::vector<MemberSummary> members;
  for (const TraceResponse& member : group.members) {
    members.push_back(MemberSummary::Of(member.segments, member.completed, member.prefix_score));
  }
  const PolicyVersion step(kMaxTraceVersion);
  const GroupSummary summary = GroupSummary::Of(group.group, step, members, 0);
  PACE_CHECK(summary.LagAt(step) >= 0, "lag = ", summary.LagAt(step));
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = pace::ParseTraceLine(text);
  pace::CheckMessage(line.status());
  if (line.ok()) {
    if (const auto* group = std::get_if<pace::TraceGroup>(&*line)) pace::CheckGroup(*group);
  }
  pace::CheckMessage(pace::ParseDecisionLine(text).status());
  pace::CheckMessage(pace::ParseManifest(text).status());
  pace::MetricsTable table;
  // A second time: the same step again is refused, and leaves one row.
  const bool read = pace::ParseMetricsLine(text, table).ok();
  const pace::Status again = pace::ParseMetricsLine(text, table);
  pace::CheckMessage(again);
  PACE_CHECK(!again.ok() && table.num_rows() == (read ? 1 : 0), table.num_rows(), " rows");
  return 0;
}
