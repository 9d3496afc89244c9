#include "execution/run_parts.h"

#include <utility>

#include "execution/learner_options.h"

namespace pace {

Result<RunParts> RunParts::Create(const Settings& settings, const Policy& policy,
                                  const Clock& clock, RunWriter* writer) {
  PACE_RETURN_IF_ERROR(CheckPrefixScores(settings, /*lab=*/false));
  RunParts parts;
  Result<std::unique_ptr<TrainingRun>> run = TrainingRun::Create(settings, policy, clock, writer);
  if (!run.ok()) return run.status();
  parts.run = std::move(run).value();
  Result<std::unique_ptr<Learner>> learner = Learner::Create(settings, policy);
  if (!learner.ok()) return learner.status();
  parts.learner = std::move(learner).value();
  Result<std::shared_ptr<ToolDesk>> desk = ToolDesk::Open(settings.tools);
  if (!desk.ok()) return desk.status();
  parts.desk = std::move(desk).value();
  Result<Evaluator> evaluator = Evaluator::Create(settings, policy, parts.desk);
  if (!evaluator.ok()) return evaluator.status();
  parts.evaluator.emplace(std::move(evaluator).value());
  return parts;
}

Result<RunCheckpoint> RunParts::Describe(PolicyVersion step, PolicyVersion served,
                                         RunWriter* writer) const {
  RunCheckpoint checkpoint;
  checkpoint.step = step;
  checkpoint.served = served;
  checkpoint.totals = run->journal().totals();
  checkpoint.step_totals = run->journal().step_totals();
  checkpoint.coordinator = run->coordinator().Save();
  for (const auto& [id, group] : run->store().groups()) checkpoint.groups.push_back(group);
  if (writer == nullptr) return checkpoint;
  Result<std::map<std::string, int64_t>> sizes = writer->Flush();
  if (!sizes.ok()) return sizes.status();
  checkpoint.record_sizes = std::move(sizes).value();
  return checkpoint;
}

Result<ResumedRun> RunParts::Restore(const std::string& checkpoints, const Policy& policy,
                                     RunObserver* observer) {
  const auto note = [observer](const std::string& text) {
    if (observer != nullptr) observer->OnNote(text);
  };
  Result<LoadedCheckpoint> loaded = LoadNewestCheckpoint(checkpoints, note);
  if (!loaded.ok()) return loaded.status();
  ResumedRun resumed;
  resumed.folder = std::move(loaded->folder);
  resumed.checkpoint = std::move(loaded->run);
  const RunCheckpoint& saved = resumed.checkpoint;
  PACE_RETURN_IF_ERROR(learner->Restore(resumed.folder));
  PACE_RETURN_IF_ERROR(run->coordinator().Restore(saved.coordinator).At(resumed.folder));
  for (const GroupTrajectories& group : saved.groups) run->store().Begin(group);
  run->journal().Restore(saved.totals, saved.step_totals, run->coordinator().pool());
  if (saved.served == saved.step) {
    resumed.served = learner->Snapshot();
    return resumed;
  }
  Result<WeightSet> served = LoadServedWeights(policy.config, resumed.folder);
  if (!served.ok()) return served.status();
  resumed.served = std::move(served).value();
  return resumed;
}

}  // namespace pace
