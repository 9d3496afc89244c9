#include "cli/train_resume.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/printable.h"
#include "record/build_info.h"
#include "record/run_reader.h"

namespace pace {
namespace {

// A name that ends in a dot stands for its whole section. docs/training.md lists them.
constexpr std::array<std::string_view, 9> kMayChange = {
    "run.num_steps",      "run.checkpoint_every",
    "run.evaluate_every", "checkpoint.",
    "evaluation.",        "record.",
    "runtime.",           "tools.url",
    "tools.python"};

std::map<std::string, std::string> ValuesOf(Settings& settings) {
  std::map<std::string, std::string> values;
  for (const Section& section : settings.Sections()) {
    for (const Field& field : section.fields) {
      values.emplace(section.name + "." + field.key(), field.Get());
    }
  }
  return values;
}

Result<RecordLevel> LevelOf(const Settings& settings, const std::string& recorded) {
  if (settings.record.level != RecordLevel::kAuto) return settings.record.level;
  if (recorded == "metrics") return RecordLevel::kMetrics;
  if (recorded == "decisions") return RecordLevel::kDecisions;
  if (recorded == "full") return RecordLevel::kFull;
  return DataLoss("manifest.json: record = ", Printable(recorded),
                  ": must be metrics, decisions or full");
}

std::string VersionNote(const std::string& version, const std::string& commit,
                        const std::string& folder) {
  if (version == PaceVersion() && commit == PaceCommit()) return "";
  return Concat(folder, " was written by pace ", version, " (", commit, "); this is pace ",
                PaceVersion(), " (", PaceCommit(), ")");
}

}  // namespace

bool MayChangeOnResume(std::string_view key) {
  return std::any_of(kMayChange.begin(), kMayChange.end(), [key](std::string_view allowed) {
    return allowed.back() == '.' ? key.starts_with(allowed) : key == allowed;
  });
}

Status CheckResumedSettings(Settings before, Settings now, const std::string& place) {
  const std::map<std::string, std::string> earlier = ValuesOf(before);
  for (const auto& [key, value] : ValuesOf(now)) {
    if (value == earlier.at(key) || MayChangeOnResume(key)) continue;
    return InvalidArgument(key, " = ", Printable(value), ": a run keeps its settings, and ", place,
                           " has ", Printable(earlier.at(key)),
                           " (docs/training.md lists what may change)");
  }
  return Status::Ok();
}

Result<ResumePlan> PlanResume(const std::string& directory,
                              const std::vector<std::string>& overrides) {
  PACE_ASSIGN_OR_RETURN(const RunManifest manifest, ReadManifest(directory));
  if (manifest.driver != "lab" && manifest.driver != "runtime") {
    return InvalidArgument("--resume ", directory, ": is a run of ", Printable(manifest.driver),
                           ", not of pace train");
  }
  ResumePlan plan;
  plan.driver = manifest.driver;
  const std::string config = directory + "/config.yaml";
  PACE_ASSIGN_OR_RETURN(const Settings before, LoadSettings(config, {}));
  PACE_ASSIGN_OR_RETURN(plan.settings, LoadSettings(config, overrides));
  plan.settings_changed = ToYaml(plan.settings) != ToYaml(before);
  PACE_RETURN_IF_ERROR(CheckResumedSettings(before, plan.settings, config));
  Result<RecordLevel> level = LevelOf(plan.settings, manifest.record);
  if (!level.ok()) return level.status().At(directory);
  plan.level = *level;

  const std::string checkpoints = directory + "/checkpoints";
  RemovePartialCheckpoints(checkpoints);
  const bool repeats = plan.driver == "lab" && before.run.checkpoint_every > 0;
  PACE_ASSIGN_OR_RETURN(
      plan.checkpoint,
      FindCheckpoint(checkpoints, repeats ? ResumeFrom::kNewestScheduled : ResumeFrom::kNewest,
                     [&plan](std::string note) { plan.notes.push_back(std::move(note)); }));
  if (!plan.checkpoint.has_value()) {
    plan.notes.push_back(directory + ": no checkpoint to go on from, so the run begins again");
    return plan;
  }
  const LoadedCheckpoint& checkpoint = *plan.checkpoint;
  const RunCheckpoint& run = checkpoint.run;
  if (!run.settings.empty()) {
    const std::string place = checkpoint.folder + "/settings.yaml";
    Settings saved;
    PACE_RETURN_IF_ERROR(ApplyYaml(saved, run.settings, place));
    PACE_RETURN_IF_ERROR(CheckResumedSettings(saved, plan.settings, place));
  }
  if (plan.driver == "lab" && run.coordinator.stop_requested) {
    plan.notes.push_back(Concat(checkpoint.folder, ": a stop asked for it, so the records from ",
                                "here on differ from those of a run never stopped"));
  }
  if (plan.settings.run.num_steps < run.step.step()) {
    return InvalidArgument("run.num_steps = ", plan.settings.run.num_steps, ": ", checkpoint.folder,
                           " has done more");
  }
  const std::string note = run.version.empty()
                               ? VersionNote(manifest.version, manifest.commit, directory)
                               : VersionNote(run.version, run.commit, checkpoint.folder);
  if (!note.empty()) plan.notes.push_back(note);
  return plan;
}

}  // namespace pace
