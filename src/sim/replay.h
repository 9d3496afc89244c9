// Replay: the verdicts of a recorded run, computed again.
//
// A trace is judged by an admission policy (and by the progress guard, if the trace has what it
// needs); events are handled by a coordinator. Both give one JSON line per step and per draw,
// in order:
//
//   {"step":7,"target_rate":0.5,"smoothed_rate":0.4,"budget":0.4,"cutoff":2.0}
//   {"group":91,"waiting":2.0,"generation":0.5,"prefix_score":0.04,
//    "percentile":0.8,"weight":0.99,"score":2.5,"verdict":"reject","reason":"over_cutoff"}
//
// Policies without a budget print less: {"step":7}, and groups without
// prefix_score, percentile and weight.
//
// Thread-safety: none.
#ifndef PACE_SIM_REPLAY_H_
#define PACE_SIM_REPLAY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "config/settings.h"
#include "control/admission_policy.h"
#include "core/status.h"

namespace pace {

// Takes one line, newline included.
using LineSink = std::function<void(std::string_view)>;

// Makes the policy, once, in place of the one that options or settings name; empty = that one,
// which must be built in.
using PolicyMaker = std::function<Result<std::unique_ptr<AdmissionPolicy>>()>;

// `path` is a trace. Lines before an error have been passed to `sink`.
Status ReplayTrace(const std::string& path, const AdmissionOptions& options, uint64_t seed,
                   const LineSink& sink, const PolicyMaker& maker = {});

// `path` is a run's events.jsonl, `settings` those of the run. With a snapshot
// (checkpoints/STEP.json of the run; empty = none) the coordinator is restored
// from it and earlier events are skipped.
Status ReplayEvents(const std::string& path, const std::string& snapshot_path,
                    const Settings& settings, const LineSink& sink, const PolicyMaker& maker = {});

// Whether the file's first line is an event rather than a trace line.
Result<bool> HoldsEvents(const std::string& path);

}  // namespace pace

#endif  // PACE_SIM_REPLAY_H_
