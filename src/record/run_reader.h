// ReadRun loads a run directory for reports.
//
//   Result<RunData> run = ReadRun("runs/pace");
//
// Files may be truncated or hostile: every error is one line that names file,
// line, field and rule. A last line that was cut off is left out and noted, so
// an interrupted run can still be looked at. Memory is proportional to the
// number of steps plus at most kMaxDecisionRows small structs.
//
// Thread-safety: pure function.
#ifndef PACE_RECORD_RUN_READER_H_
#define PACE_RECORD_RUN_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "core/decision.h"
#include "core/status.h"
#include "record/metrics_table.h"
#include "record/response_record.h"
#include "record/run_warnings.h"

namespace pace {

// Later decisions of a longer file are left out, and noted.
inline constexpr int64_t kMaxDecisionRows = 10'000'000;
inline constexpr size_t kMaxWarnings = 1000;
inline constexpr size_t kMaxEvaluatedResponses = 16;
inline constexpr size_t kMaxShownTextBytes = 8192;

struct RunManifest {
  std::string name;
  std::string driver;
  std::string method;
  std::string record;
  std::string version;
  std::string commit;
  int64_t seed = 0;
  // Of runs with a real model; empty or 0 where the run does not say.
  std::string machine = {};
  std::string device = {};
  std::string torch = {};
  std::string determinism = {};
  int64_t threads = 0;
  int64_t start = 0;  // seconds since 1970; 0 under a virtual clock
};

// One verdict, as small as drawing needs it.
struct DecisionRow {
  int64_t step = 0;
  Verdict verdict = Verdict::kAdmit;
  Reason reason = Reason::kUnfiltered;
  std::optional<float> prefix_score;
  float waiting = 0;
  float waiting_assembly = 0;
  float generation = 0;
  float score = 0;
  float length = 0;
  float reward = 0;
  float turns = 0;

  bool trained() const { return verdict == Verdict::kAdmit; }
};

struct RunData {
  std::string directory;
  RunManifest manifest;
  Settings settings;
  MetricsTable metrics;
  // eval.jsonl, by policy version; empty when the run evaluated nothing.
  MetricsTable evaluations;
  bool has_decisions = false;  // whether the run wrote them
  std::vector<DecisionRow> decisions;
  // Of responses.jsonl the few that ResponsePicker takes, and of the last
  // evaluation at most kMaxEvaluatedResponses; long texts lose their middle.
  std::vector<ResponseRecord> responses;
  std::vector<ResponseRecord> evaluated;
  std::vector<RunWarning> warnings;  // warnings.jsonl, at most kMaxWarnings
  std::vector<std::string> notes;    // what was left out, a sentence each
};

Result<RunData> ReadRun(const std::string& directory);
Result<RunManifest> ReadManifest(const std::string& directory);

// The parts, each on text from memory, for tests and fuzzing.
Result<RunManifest> ParseManifest(std::string_view json);
std::string ManifestToJson(RunManifest manifest);
// One line of metrics.jsonl or eval.jsonl: adds its row, or leaves the rows as
// they were.
Status ParseMetricsLine(std::string_view line, MetricsTable& table);
Result<DecisionRow> ParseDecisionLine(std::string_view line);

}  // namespace pace

#endif  // PACE_RECORD_RUN_READER_H_
