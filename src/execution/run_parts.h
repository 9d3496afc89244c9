// RunParts: what every driver of a training run has, made, described and restored
// in one place.
//
//   Result<RunParts> parts = RunParts::Create(settings, policy, clock, writer, saves);
//   Result<RunCheckpoint> saved = parts->Describe(step, served, writer);
//   Result<ResumedRun> resumed = parts->Restore(folder, loaded, policy, observer);
//
// Thread-safety: none, but for the learner, which may be on another thread.
#ifndef PACE_EXECUTION_RUN_PARTS_H_
#define PACE_EXECUTION_RUN_PARTS_H_

#include <memory>
#include <optional>
#include <string>

#include "config/settings.h"
#include "core/clock.h"
#include "core/status.h"
#include "execution/checkpoint.h"
#include "execution/evaluator.h"
#include "execution/learner.h"
#include "execution/policy.h"
#include "execution/run_observer.h"
#include "execution/tool_executor.h"
#include "execution/training_run.h"
#include "record/run_writer.h"

namespace pace {

struct ResumedRun {
  std::string folder = {};
  RunCheckpoint checkpoint = {};
  WeightSet served = {};  // what engines are to begin with
};

// What can be said of a run before anything of it is made: its tasks and benchmarks can be
// read, its first prompt rendered, its responses held, its loss trained, its tools run.
Status CheckRun(const Settings& settings, const Policy& policy);

struct RunParts {
  std::unique_ptr<TrainingRun> run = {};
  std::unique_ptr<Learner> learner = {};
  std::optional<Evaluator> evaluator = {};
  std::shared_ptr<ToolExecutor> executor = {};  // null without tools

  // All references outlive the parts; `writer` may be null. `saves`: a checkpoint is taken
  // at the end, whatever run.checkpoint_every says.
  static Result<RunParts> Create(const Settings& settings, const Policy& policy, const Clock& clock,
                                 RunWriter* writer, bool saves);

  // Tells the observer, null or not, what holds the programs of tools.
  void NoteTools(RunObserver* observer) const;

  // The part of a checkpoint that does not depend on the driver. `writer` may be
  // null; otherwise its files are flushed and their sizes noted.
  Result<RunCheckpoint> Describe(PolicyVersion step, PolicyVersion served, RunWriter* writer) const;

  // Puts a checkpoint back: `loaded`, which is emptied, or where it is null the newest
  // whole one; `observer`, null or not, hears of those that were skipped.
  // REQUIRES: freshly made
  Result<ResumedRun> Restore(const std::string& checkpoints, LoadedCheckpoint* loaded,
                             const Policy& policy, RunObserver* observer);
};

}  // namespace pace

#endif  // PACE_EXECUTION_RUN_PARTS_H_
