// SessionRecord: the run directory of an AdmissionSession, as the drivers of pace write theirs.
//
// config.yaml, manifest.json, metrics.jsonl, decisions.jsonl and trace.jsonl: `pace report` shows
// it, and `pace replay` computes its verdicts again.
//
//   PACE_ASSIGN_OR_RETURN(SessionRecord record, SessionRecord::Create("runs/mine", settings, 0));
//   PACE_RETURN_IF_ERROR(record.BeginStep(plan, served, now));
//   PACE_RETURN_IF_ERROR(record.Draw(group, members, decision, payload, served));
//   PACE_RETURN_IF_ERROR(record.Finish(now));
//
// A step's row is written when the next step begins, or by Flush or Finish. A session that can be
// killed and go on keeps what Flush returns with its own state; Resume goes on from there as if
// nothing had been recorded since.
//
// Thread-safety: none. Errors stick, as in RunWriter.
#ifndef PACE_RECORD_SESSION_RECORD_H_
#define PACE_RECORD_SESSION_RECORD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "config/settings.h"
#include "core/clock.h"
#include "core/decision.h"
#include "core/staleness.h"
#include "core/status.h"
#include "record/run_writer.h"
#include "record/step_metrics.h"

namespace pace {

class SessionRecord {
 public:
  // What a later Resume needs.
  struct State {
    std::map<std::string, int64_t> sizes;  // of the files
    Seconds time{0};                       // the `now` of Flush
    int64_t num_admitted = 0;
    int64_t num_tokens = 0;
    int64_t num_tokens_rejected = 0;
  };

  // `settings` holds the session's admission options, batch.num_groups and run.seed. `start`:
  // seconds since 1970, 0 = not stated.
  static Result<SessionRecord> Create(const std::string& directory, const Settings& settings,
                                      int64_t start);
  // `settings` must be those of Create; they are not compared. A file that is shorter than it was
  // is DataLoss.
  static Result<SessionRecord> Resume(const std::string& directory, const Settings& settings,
                                      const State& state);

  // `now` counts from the beginning of the session.
  Status BeginStep(const StepPlan& plan, std::optional<PolicyVersion> served, Seconds now);
  Status Draw(const GroupSummary& group, std::span<const TraceMember> members,
              const Decision& decision, const PayloadStats& payload,
              std::optional<PolicyVersion> served);
  // Ends the step and writes everything out.
  Result<State> Flush(Seconds now);
  Status Finish(Seconds now);

 private:
  explicit SessionRecord(std::unique_ptr<RunWriter> writer, int64_t batch);
  Status EndStep(Seconds now);

  std::unique_ptr<RunWriter> writer_;
  int64_t batch_;
  StepMetrics metrics_;
  std::optional<StepPlan> plan_;  // of the step whose row is not written yet
  Seconds step_begin_{0};
  int64_t num_admitted_ = 0, num_tokens_ = 0, num_tokens_rejected_ = 0;
  int64_t num_step_tokens_ = 0;
};

}  // namespace pace

#endif  // PACE_RECORD_SESSION_RECORD_H_
