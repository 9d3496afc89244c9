// RunWriter puts one run into its directory as the run goes on.
//
// Layout and line formats: docs/run-directory.md. Nothing it writes depends on
// the wall clock, so the same run gives the same bytes.
//
// Thread-safety: none; one driver owns it. Errors stick: the first failure to
// write is returned by every later call.
#ifndef PACE_RECORD_RUN_WRITER_H_
#define PACE_RECORD_RUN_WRITER_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "core/decision.h"
#include "core/staleness.h"
#include "core/status.h"
#include "record/step_metrics.h"

namespace pace {

struct Manifest {
  std::string name;    // what reports call the run
  std::string driver;  // sim, lab, runtime
};

// One member of a drawn group as trace.jsonl writes it.
struct TraceMember {
  PolicyVersion completed;
  std::span<const Segment> segments;
  std::optional<double> prefix_score;
};

class RunWriter {
 public:
  // Creates the directory (its parent must exist) with config.yaml and
  // manifest.json. A directory that holds another run is an error.
  static Result<std::unique_ptr<RunWriter>> Create(const std::string& directory,
                                                   const Settings& settings,
                                                   const Manifest& manifest, RecordLevel level);
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
  virtual Status WriteMetrics(const MetricsRow& row) = 0;
  // checkpoints/STEP.json at level full: the coordinator's snapshot.
  virtual Status WriteSnapshot(PolicyVersion step, std::string_view json) = 0;

  // Flushes and closes every file. The run is whole only after this.
  virtual Status Finish() = 0;

  virtual RecordLevel level() const = 0;
  virtual const std::string& directory() const = 0;
};

}  // namespace pace

#endif  // PACE_RECORD_RUN_WRITER_H_
