// RunWriter puts one run into its directory as the run goes on.
//
// Layout and line formats: docs/run-directory.md. Nothing it writes depends on
// the wall clock beyond what it is told, so the same run gives the same bytes.
//
// A run that can be killed and go on calls Flush with every checkpoint and keeps
// the sizes in it; Resume goes on from there as if nothing had been written
// since:
//
//   Result<std::map<std::string, int64_t>> sizes = writer->Flush();
//   // ... killed ...
//   auto resumed = RunWriter::Resume(directory, level, /*tensorboard=*/true, *sizes);
//
// Thread-safety: none; one driver owns it. Errors stick: the first failure to
// write is returned by every later call.
#ifndef PACE_RECORD_RUN_WRITER_H_
#define PACE_RECORD_RUN_WRITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "core/clock.h"
#include "core/decision.h"
#include "core/ids.h"
#include "core/staleness.h"
#include "core/status.h"
#include "core/version.h"
#include "record/response_record.h"
#include "record/run_warnings.h"
#include "record/step_metrics.h"

namespace pace {

// A record goes on in another part from here on (line_file.h).
inline constexpr int64_t kMaxRecordBytes = int64_t{1} << 30;

struct Manifest {
  std::string name;    // what reports call the run
  std::string driver;  // sim, lab, runtime

  // Where it runs; what is empty or 0 is not written.
  std::string machine = {};      // processor and cores
  std::string device = {};       // cpu, cuda
  std::string torch = {};        // version
  int64_t threads = 0;           // of the whole process
  std::string determinism = {};  // what running it again gives
  int64_t start = 0;             // seconds since 1970; 0 under a virtual clock

  // How it is recorded.
  bool tensorboard = false;  // metrics and evaluations as an event file, too
  bool watchable = false;    // their lines reach the file one by one, the others every step
  int64_t max_file_bytes = kMaxRecordBytes;
};

// Replaces config.yaml of a run that goes on with other settings.
Status RewriteConfig(const std::string& directory, const Settings& settings);

// One member of a drawn group as trace.jsonl writes it.
struct TraceMember {
  PolicyVersion completed;
  std::span<const Segment> segments;
  std::optional<double> prefix_score;
};

// One finished response as rollouts.jsonl writes it.
struct RolloutLine {
  GroupId group{};
  int64_t member = 0;
  PromptIndex prompt{};
  PolicyVersion completed{};
  std::string_view reason = {};
  bool correct = false;
  double reward = 0;
  int64_t length = 0;  // policy tokens
  int64_t turns = 1;   // of the assistant's
  int64_t tool_calls = 0;
  int64_t tool_failures = 0;
  Seconds tool_time{0};
  // What a reward function gave beside the score: a JSON object; empty = not written.
  std::string_view detail = {};
};

class RunWriter {
 public:
  // Creates the directory (its parent must exist) with config.yaml and
  // manifest.json. A directory that holds another run is an error.
  static Result<std::unique_ptr<RunWriter>> Create(const std::string& directory,
                                                   const Settings& settings,
                                                   const Manifest& manifest, RecordLevel level);
  // Goes on with a run whose files had these sizes: cuts them back, removes
  // what was begun later, appends; without sizes the run begins again. The lines are
  // watchable. Another level than before is stated in the manifest: files that it leaves
  // out stay as they are; full is an error, since a trace begins with its run. A file
  // that is shorter or missing is DataLoss, and then nothing is changed.
  static Result<std::unique_ptr<RunWriter>> Resume(const std::string& directory, RecordLevel level,
                                                   bool tensorboard,
                                                   const std::map<std::string, int64_t>& sizes,
                                                   int64_t max_file_bytes = kMaxRecordBytes);
  virtual ~RunWriter() = default;

  // decisions.jsonl from level decisions on.
  virtual Status WriteDecision(const StepPlan& plan, const GroupSummary& group,
                               const Decision& decision, const PayloadStats& payload) = 0;
  // trace.jsonl at level full: a step line, then a line per draw.
  virtual Status WriteTraceStep(const StepPlan& plan, int64_t batch,
                                std::optional<PolicyVersion> served) = 0;
  virtual Status WriteTraceDraw(GroupId group, std::span<const TraceMember> members,
                                std::optional<PolicyVersion> served) = 0;
  // events.jsonl at level full: a ready JSON object, without newline.
  virtual Status WriteEvent(std::string_view json) = 0;
  // rollouts.jsonl from level decisions on; the file appears with the first call.
  virtual Status WriteRollout(const RolloutLine& line) = 0;
  // responses.jsonl and warnings.jsonl, at every level; each file appears with the
  // first call, and its lines at once.
  virtual Status WriteResponse(const ResponseRecord& response) = 0;
  virtual Status WriteWarning(const RunWarning& warning) = 0;
  // metrics.jsonl: `step`, `time`, then anything. Steps increase.
  virtual Status WriteMetrics(const MetricsRow& row) = 0;
  // eval.jsonl: what the policy of this version can do. `time` is the driver's
  // clock; versions increase. The file appears with the first call.
  virtual Status WriteEvaluation(PolicyVersion version, Seconds time, const MetricsRow& row) = 0;
  // checkpoints/STEP.json at level full: the coordinator's snapshot.
  virtual Status WriteSnapshot(PolicyVersion step, std::string_view json) = 0;

  // Writes out everything buffered and has the disk keep it. Returns the size of
  // each file so far, by its name.
  virtual Result<std::map<std::string, int64_t>> Flush() = 0;
  // Flushes and closes every file. The run is whole only after this.
  virtual Status Finish() = 0;

  virtual RecordLevel level() const = 0;
  virtual const std::string& directory() const = 0;
};

}  // namespace pace

#endif  // PACE_RECORD_RUN_WRITER_H_
