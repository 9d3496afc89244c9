#include "execution/run_parts.h"

#include <utility>

#include "execution/engine_maker.h"
#include "execution/learner_options.h"
#include "record/build_info.h"
#include "task/benchmark.h"

namespace pace {

Status CheckRun(const Settings& settings, const Policy& policy) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  PACE_RETURN_IF_ERROR(TrainerOptionsOf(settings).status());
  PACE_RETURN_IF_ERROR(CheckContext(settings, policy));
  PACE_ASSIGN_OR_RETURN(const PromptSource prompt_source, PromptSource::Create(settings, policy));
  PACE_RETURN_IF_ERROR(prompt_source.RequestFor(GroupId(0), PromptIndex(0)).status());
  PACE_RETURN_IF_ERROR(LoadBenchmarks(settings.task).status());
  return ToolExecutor::Open(settings.tools).status();
}

Result<RunParts> RunParts::Create(const Settings& settings, const Policy& policy,
                                  const Clock& clock, RunWriter* writer, bool saves) {
  PACE_RETURN_IF_ERROR(CheckPrefixScores(settings, /*lab=*/false));
  RunParts parts;
  PACE_ASSIGN_OR_RETURN(parts.run, TrainingRun::Create(settings, policy, clock, writer, saves));
  PACE_ASSIGN_OR_RETURN(parts.learner, Learner::Create(settings, policy));
  PACE_ASSIGN_OR_RETURN(parts.executor, ToolExecutor::Open(settings.tools));
  PACE_ASSIGN_OR_RETURN(Evaluator evaluator, Evaluator::Create(settings, policy, parts.executor));
  parts.evaluator.emplace(std::move(evaluator));
  return parts;
}

void RunParts::NoteTools(RunObserver* observer) const {
  if (executor == nullptr || observer == nullptr) return;
  const std::string text = executor->Description();
  if (!text.empty()) observer->OnNote("sandbox: " + text);
}

Result<RunCheckpoint> RunParts::Describe(PolicyVersion step, PolicyVersion served,
                                         RunWriter* writer) const {
  RunCheckpoint checkpoint;
  checkpoint.step = step;
  checkpoint.served = served;
  checkpoint.totals = run->journal().totals();
  checkpoint.step_totals = run->journal().step_totals();
  checkpoint.coordinator = run->coordinator().Save();
  checkpoint.settings = ToYaml(run->settings());
  checkpoint.version = PaceVersion();
  checkpoint.commit = PaceCommit();
  for (const auto& [id, group] : run->store().groups()) checkpoint.groups.push_back(group);
  if (writer == nullptr) return checkpoint;
  PACE_ASSIGN_OR_RETURN(checkpoint.record_sizes, writer->Flush());
  return checkpoint;
}

Result<ResumedRun> RunParts::Restore(const std::string& checkpoints, LoadedCheckpoint* loaded,
                                     const Policy& policy, RunObserver* observer) {
  ResumedRun resumed;
  if (loaded != nullptr) {
    resumed.folder = std::exchange(loaded->folder, {});
    resumed.checkpoint = std::exchange(loaded->run, {});
  } else {
    const auto note = [observer](const std::string& text) {
      if (observer != nullptr) observer->OnNote(text);
    };
    PACE_ASSIGN_OR_RETURN(LoadedCheckpoint newest, LoadNewestCheckpoint(checkpoints, note));
    resumed.folder = std::move(newest.folder);
    resumed.checkpoint = std::move(newest.run);
  }
  const RunCheckpoint& saved = resumed.checkpoint;
  PACE_RETURN_IF_ERROR(learner->Restore(resumed.folder));
  PACE_RETURN_IF_ERROR(run->coordinator().Restore(saved.coordinator).At(resumed.folder));
  for (GroupTrajectories& group : resumed.checkpoint.groups) {
    run->store().Begin(std::move(group));
  }
  resumed.checkpoint.groups.clear();
  run->journal().Restore(saved.totals, saved.step_totals, run->coordinator().pool());
  if (saved.served == saved.step) {
    resumed.served = learner->Snapshot();
    return resumed;
  }
  PACE_ASSIGN_OR_RETURN(resumed.served, LoadServedWeights(policy.config, resumed.folder));
  return resumed;
}

}  // namespace pace
