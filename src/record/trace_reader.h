// TraceReader reads an admission trace, line by line and strictly.
//
//   Result<TraceReader> trace = TraceReader::Open(path);
//   while (true) {
//     Result<std::optional<TraceLine>> line = trace->Next();
//     if (!line.ok()) return line.status();
//     if (!line->has_value()) break;
//     Use(**line);
//   }
//
// The format is docs/run-directory.md's; other programs write it too. Every
// error is one line: FILE:LINE: field = value: rule (hint). What it returns
// meets the preconditions of MemberSummary::Of and AdmissionPolicy.
//
// Thread-safety: none.
#ifndef PACE_RECORD_TRACE_READER_H_
#define PACE_RECORD_TRACE_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/line_reader.h"
#include "core/staleness.h"
#include "core/status.h"
#include "core/version.h"

namespace pace {

// Bounds that no run we can name reaches; sums over any one line stay inside
// 64 bits.
inline constexpr int64_t kMaxTraceVersion = 1'000'000'000'000;
inline constexpr int64_t kMaxTraceTokens = 1'000'000'000;    // of one segment
inline constexpr int64_t kMaxTraceCount = int64_t{1} << 53;  // group ids, occupancy, batch
inline constexpr double kMaxTracePrefixScore = 1e9;

// A step begins.
struct TraceStep {
  PolicyVersion step;
  int64_t occupancy = 0;
  std::optional<int64_t> batch;
  std::optional<PolicyVersion> served;  // the oldest version a live worker serves
};

struct TraceResponse {
  PolicyVersion completed;
  std::vector<Segment> segments;  // in generation order, not empty
  std::optional<double> prefix_score;
};

// A group is drawn in the step begun last.
struct TraceGroup {
  GroupId group;
  std::vector<TraceResponse> members;  // not empty
  std::optional<PolicyVersion> served;
  // Whether the line itself says so. If not, TraceReader fills in `served` as
  // the lines before left it.
  bool states_served = false;
};

using TraceLine = std::variant<TraceStep, TraceGroup>;

// One line on its own: syntax, keys, types, bounds, and all rules that need no
// other line. Never fails otherwise than by its Status.
Result<TraceLine> ParseTraceLine(std::string_view line);

class TraceReader {
 public:
  static Result<TraceReader> Open(const std::string& path);

  // The next line; nothing at the end of the file. Adds the rules that span
  // lines: steps increase, a group follows a step, is drawn once, and is not
  // from the future.
  Result<std::optional<TraceLine>> Next();

  // FILE:LINE of the line Next returned, for errors of whoever uses it.
  std::string Place() const { return lines_.Place(); }

 private:
  explicit TraceReader(LineReader lines) : lines_(std::move(lines)) {}
  Status Accept(TraceStep& step);
  Status Accept(TraceGroup& group);

  LineReader lines_;
  std::optional<PolicyVersion> step_;
  std::optional<PolicyVersion> served_;
  std::unordered_set<GroupId> seen_;
};

}  // namespace pace

#endif  // PACE_RECORD_TRACE_READER_H_
