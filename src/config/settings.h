// Settings: everything a run can be told, in sections. Stable: docs/library.md.
//
// A key is `section.field`, as in supply.threshold. Sources, later ones win:
// the defaults, a preset or a YAML file (which may name a preset to start
// from), then `key=value` overrides.
//
//   Result<Settings> settings = LoadSettings("math-4b", {"supply.threshold=4"});
//
// What is chosen by name has options: `train.loss: {name: ppo, clip_high: 0.28}`, or
// train.loss=ppo train.loss.clip_high=0.28.
//
// An unknown key is an error that names the nearest one. Input shorthands:
// `admission.variant` for wait_weight and generation_weight, `device` for
// policy.device.
#ifndef PACE_CONFIG_SETTINGS_H_
#define PACE_CONFIG_SETTINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "config/admission_options.h"
#include "config/cluster_options.h"
#include "config/field.h"
#include "config/launch_options.h"
#include "config/learning_options.h"
#include "config/reward_options.h"
#include "config/run_options.h"
#include "config/task_options.h"
#include "config/tools_options.h"
#include "config/workload_options.h"
#include "core/status.h"

namespace pace {

// One named part of the settings, its fields bound to a Settings object.
struct Section {
  std::string name;
  std::string doc;
  std::vector<Field> fields;
};

struct Settings {
  RunOptions run;
  BatchOptions batch;
  SupplyOptions supply;
  AdmissionOptions admission;
  PoolOptions pool;
  PrefixOptions prefix;
  ModelOptions model;
  GpuOptions gpu;
  ClusterOptions cluster;
  WorkloadOptions workload;
  ChangeOptions change;
  PolicyOptions policy;
  TaskOptions task;
  RewardOptions reward;
  PromptOptions prompt;
  ResponseOptions generation;
  ToolsOptions tools;
  EngineSettings engine;
  LearningOptions train;
  SftOptions sft;
  EvaluationOptions evaluation;
  CheckpointOptions checkpoint;
  RuntimeOptions runtime;
  LaunchOptions launch;
  RecordOptions record;
  CompareOptions compare;

  // Responses of a group: batch.group_size that are trained on, and the last, a
  // greedy one to compare them with, where the advantage wants it.
  [[nodiscard]] int64_t NumMembers() const {
    return batch.group_size + (train.WantsGreedyResponse() ? 1 : 0);
  }

  // The whole list, in the order it is written. Borrows *this.
  [[nodiscard]] std::vector<Section> Sections();

  // Rules that span fields; single fields are checked as they are set.
  [[nodiscard]] Status Validate() const;
};

// Sets one `section.field` or `section.choice.option`. The message of an error starts with the key.
Status SetField(Settings& settings, std::string_view key, const FieldValue& value);

// Applies "key=value".
Status ApplyOverride(Settings& settings, std::string_view assignment);

// Applies several: choices by name, such as train.loss, before their options. Another
// name drops the options of the one before.
Status ApplyOverrides(Settings& settings, const std::vector<std::string>& assignments);

// Applies a YAML document. `name` stands in front of errors, with the line.
// Choices come before their options, as above.
Status ApplyYaml(Settings& settings, std::string_view yaml, const std::string& name);

// A preset's name, or the path of a YAML file; then ApplyOverrides; then Validate.
Result<Settings> LoadSettings(const std::string& preset_or_path,
                              const std::vector<std::string>& overrides);

// The resolved settings as YAML that loads back to the same settings.
std::string ToYaml(const Settings& settings);

// Every key with type, default and meaning, as Markdown.
std::string DescribeSettings();

}  // namespace pace

#endif  // PACE_CONFIG_SETTINGS_H_
