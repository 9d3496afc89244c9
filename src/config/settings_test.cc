#include "config/settings.h"

#include <gtest/gtest.h>

#include "config/admission_options.h"
#include "config/presets.h"

namespace pace {
namespace {

std::string YamlError(const std::string& yaml) {
  Settings settings;
  const Status status = ApplyYaml(settings, yaml, "x.yaml");
  return status.ok() ? "accepted" : status.message();
}

std::string OverrideError(const std::string& assignment) {
  Settings settings;
  const Status status = ApplyOverride(settings, assignment);
  return status.ok() ? "accepted" : status.message();
}

TEST(SettingsTest, ErrorsNameFileLineFieldValueAndRule) {
  EXPECT_EQ(YamlError("run:\n  seed: 3\nsupply:\n  threshold: -1\n"),
            "x.yaml:4: supply.threshold = -1: must be >= 0 (0 means on-policy)");
  EXPECT_EQ(YamlError("admission:\n  betta: 1\n"),
            "x.yaml:2: unknown key admission.betta (nearest: admission.beta; all keys: pace "
            "config --keys)");
  EXPECT_EQ(YamlError("admission:\n  beta: .nan\n"),
            "x.yaml:2: admission.beta = .nan: must be a number");
  EXPECT_EQ(YamlError("admission:\n  beta: nan\n"),
            "x.yaml:2: admission.beta = nan: must be a finite number");
  EXPECT_EQ(YamlError("batch:\n  num_groups: 1.5\n"),
            "x.yaml:2: batch.num_groups = 1.5: must be an integer");
  EXPECT_EQ(YamlError("batch:\n  num_groups: 99999999999999999999\n"),
            "x.yaml:2: batch.num_groups = 99999999999999999999: must be an integer");
  EXPECT_EQ(YamlError("batch:\n  num_groups: [1]\n"),
            "x.yaml:2: batch.num_groups = [...]: must be an integer");
  EXPECT_EQ(YamlError("batch: 3\n"), "x.yaml:1: batch: must hold indented keys");
  EXPECT_EQ(YamlError("- a\n"), "x.yaml: must hold sections, as in `supply:` and indented keys");
  EXPECT_EQ(YamlError("run: {seed: [}\n").find("x.yaml:1: not YAML"), 0U);
}

TEST(SettingsTest, OverridesFollowTheSameRules) {
  EXPECT_EQ(OverrideError("supply.threshold=4"), "accepted");
  EXPECT_EQ(OverrideError("supply.threshold"), "override supply.threshold: must be key=value");
  EXPECT_EQ(OverrideError("threshold=4").find("unknown key threshold"), 0U);
  EXPECT_EQ(OverrideError("admission.ties=maybe"),
            "admission.ties = maybe: must be one of strict, fractional");
  EXPECT_EQ(OverrideError("admission.observe=yes"),
            "admission.observe = yes: must be true or false");
}

TEST(SettingsTest, APolicyMayBeAClassInPython) {
  Settings settings;
  ASSERT_TRUE(ApplyOverride(settings, "admission.policy=python:a b.py:Mine").ok());
  EXPECT_EQ(settings.admission.policy, AdmissionKind::kPython);
  EXPECT_EQ(MethodName(settings.admission), "python:Mine");
  EXPECT_TRUE(settings.Validate().ok());
  Settings again;
  ASSERT_TRUE(ApplyYaml(again, ToYaml(settings), "again").ok());
  EXPECT_EQ(again.admission.python_class, "python:a b.py:Mine");
  EXPECT_EQ(again.admission.policy, AdmissionKind::kPython);
  ASSERT_TRUE(ApplyOverride(again, "admission.policy=stale_k").ok());
  EXPECT_EQ(again.admission.policy, AdmissionKind::kStaleK);
  EXPECT_EQ(again.admission.python_class, "");
  ASSERT_TRUE(ApplyOverride(again, "admission.policy=python:mine.py").ok());
  EXPECT_EQ(again.Validate().message(),
            "admission.policy = python:mine.py: must be python:FILE:CLASS, as "
            "python:my_policy.py:Policy");
  EXPECT_EQ(OverrideError("admission.policy=mine"),
            "admission.policy = mine: must be one of pace, stale_k, accept_all, oldest_token, "
            "pace_fair, start_window or python:FILE:CLASS");
}

TEST(SettingsTest, OnlyAPolicyThatAsksReadsPrefixScores) {
  Settings settings;
  ASSERT_TRUE(ApplyOverride(settings, "admission.policy=python:mine.py:Mine").ok());
  EXPECT_FALSE(settings.admission.UsesPrefixScores());
  settings.admission.observe = true;
  EXPECT_TRUE(settings.admission.UsesPrefixScores());
}

TEST(SettingsTest, AVariantIsShorthandAndCannotContradict) {
  Settings settings;
  ASSERT_TRUE(ApplyOverride(settings, "admission.variant=generation").ok());
  EXPECT_EQ(settings.admission.wait_weight, 0);
  EXPECT_EQ(MethodName(settings.admission), "generation");
  EXPECT_EQ(
      OverrideError("admission.variant=best"),
      "admission.variant = best: must be one of effective (or pace), raw, generation, waiting");
  EXPECT_EQ(YamlError("admission:\n  variant: raw\n  wait_weight: 2\n"),
            "x.yaml:3: admission.wait_weight: admission.variant already sets it (keep one of "
            "them)");
}

TEST(SettingsTest, DeviceIsShorthandInFilesAndOverrides) {
  Settings settings;
  EXPECT_TRUE(ApplyYaml(settings, "preset: tiny\ndevice: cuda\n", "x.yaml").ok());
  EXPECT_EQ(settings.policy.device, PolicyDevice::kCuda);
  EXPECT_TRUE(ApplyOverride(settings, "device=cpu").ok());
  EXPECT_EQ(settings.policy.device, PolicyDevice::kCpu);
  EXPECT_EQ(YamlError("device: tpu\n"), "x.yaml:1: policy.device = tpu: must be one of cpu, cuda");
  EXPECT_EQ(OverrideError("device=tpu"), "policy.device = tpu: must be one of cpu, cuda");
}

TEST(SettingsTest, ToolsKindIsAnotherNameOfToolsUse) {
  Settings settings;
  ASSERT_TRUE(ApplyYaml(settings, "tools: {kind: python:env.py:Env}\n", "x.yaml").ok());
  EXPECT_EQ(settings.tools.use, "python:env.py:Env");
  ASSERT_TRUE(ApplyOverride(settings, "tools.kind=code_interpreter").ok());
  EXPECT_EQ(settings.tools.use, "code_interpreter");
  EXPECT_NE(ToYaml(settings).find("  use: code_interpreter"), std::string::npos);
  EXPECT_EQ(YamlError("tools: {use: none, kind: none}\n"),
            "x.yaml:1: tools.kind: tools.use already sets it (keep one of them)");
}

TEST(SettingsTest, ARepeatedKeyAndASecondDocumentAreRefused) {
  EXPECT_EQ(YamlError("run:\n  seed: 3\n  seed: 4\n"),
            "x.yaml:3: seed: is there twice (keep one of them)");
  EXPECT_EQ(YamlError("run: {seed: 3}\npool: {}\nrun: {seed: 4}\n"),
            "x.yaml:3: run: is there twice (keep one of them)");
  EXPECT_EQ(YamlError("run: {seed: 3}\n---\nrun: {seed: 4}\n"),
            "x.yaml:2: a second document begins here: must be one");
  // yaml-cpp finds empty documents here without end.
  EXPECT_EQ(YamlError(","), "x.yaml:1: no YAML value can begin like this line");
  EXPECT_EQ(YamlError("# run\n, seed: 3\n"), "x.yaml:2: no YAML value can begin like this line");
  EXPECT_EQ(YamlError(""), "accepted");
  EXPECT_EQ(YamlError("---\nrun: {seed: 3}\n...\n"), "accepted");
}

TEST(SettingsTest, OddTextsReadBackFromWhatIsWritten) {
  for (const char* text : {"null", "Null", "NULL", "~", "", "true", "-a", "a: b", "[a", "a, b"}) {
    Settings settings;
    settings.policy.model = text;
    settings.task.benchmarks = {text, "b"};
    Settings again;
    const Status status = ApplyYaml(again, ToYaml(settings), "again");
    ASSERT_TRUE(status.ok()) << text << ": " << status.message();
    EXPECT_EQ(again.policy.model, text);
    EXPECT_EQ(again.task.benchmarks, settings.task.benchmarks);
  }
}

TEST(SettingsTest, ListsOnTheCommandLineKeepTheirTexts) {
  Settings settings;
  ASSERT_TRUE(ApplyOverride(settings, "task.benchmarks=[my data/a.jsonl, a[1].jsonl]").ok());
  EXPECT_EQ(settings.task.benchmarks, (std::vector<std::string>{"my data/a.jsonl", "a[1].jsonl"}));
  EXPECT_EQ(OverrideError("task.benchmarks=[a, b"),
            "task.benchmarks = [a, b: a [ has no partner (put the item in quotes)");
}

TEST(SettingsTest, AnotherLossDropsThePresetsSettings) {
  const auto settings = [](const std::vector<std::string>& overrides) {
    return LoadSettings("tiny", overrides)->train.loss_settings;
  };
  EXPECT_EQ(settings({}).size(), 3U);
  EXPECT_EQ(settings({"train.loss=ppo"}).size(), 3U);
  EXPECT_TRUE(settings({"train.loss=cispo"}).empty());
  const std::vector<std::string> own = {"clip_high"};
  EXPECT_EQ(settings({"train.loss_settings=clip_high=0.3", "train.loss=cispo"}), own);
  Settings file;
  ASSERT_TRUE(ApplyYaml(file, "preset: tiny\ntrain: {loss: cispo}\n", "x.yaml").ok());
  EXPECT_TRUE(file.train.loss_settings.empty());
  ASSERT_TRUE(ApplyYaml(file, "preset: tiny\ntrain: {loss_settings: [clip_high=1], loss: cispo}\n",
                        "x.yaml")
                  .ok());
  EXPECT_EQ(file.train.loss_settings, own);
  EXPECT_EQ(file.train.loss.cispo.clip_high, 1);
}

TEST(SettingsTest, OptionsOfALossAreTypedKeys) {
  const auto loss = [](const std::vector<std::string>& overrides) {
    return LoadSettings("tiny", overrides)->train.loss;
  };
  EXPECT_EQ(loss({}).ppo.dual_clip, 10);
  EXPECT_EQ(loss({"train.loss.clip_high=0.5"}).ppo.clip_high, 0.5);
  EXPECT_EQ(loss({"train.loss.clip_high=0.5"}).ppo.dual_clip, 10);
  EXPECT_EQ(loss({"train.loss.clip_high=0.5", "train.loss=dapo"}).dapo.clip_high, 0.5);
  EXPECT_FALSE(loss({"train.loss.dual_clip=none"}).ppo.dual_clip.has_value());
  Settings file;
  ASSERT_TRUE(
      ApplyYaml(file, "preset: tiny\ntrain: {loss: {name: ppo, clip_high: 0.4}}\n", "x.yaml").ok());
  EXPECT_EQ(file.train.loss.ppo.clip_high, 0.4);
  EXPECT_FALSE(file.train.loss.ppo.dual_clip.has_value());  // a block states all options
  ASSERT_TRUE(ApplyYaml(file, "train: {opob: {name: true, scope: minibatch}}\n", "x.yaml").ok());
  EXPECT_EQ(file.train.opob->scope, OpobOptions::Scope::kMinibatch);
  Settings again;
  ASSERT_TRUE(ApplyYaml(again, ToYaml(file), "again").ok());
  EXPECT_EQ(ToYaml(again), ToYaml(file));
  EXPECT_EQ(again.train.loss.ppo.clip_high, 0.4);
}

TEST(SettingsTest, TheListsOfOptionsThatRunsRecordStillLoad) {
  Settings settings;
  const Status status = ApplyYaml(settings,
                                  "train:\n"
                                  "  advantage: gae\n  advantage_settings: [\"lambda=0.5\"]\n"
                                  "  loss: m2po\n  loss_settings: [\"budget=0.1\"]\n"
                                  "  correction: tis\n  correction_settings: [\"upper=8\"]\n"
                                  "  ess_learning_rate: true\n  ess_settings: [\"rule=linear\"]\n"
                                  "  opob: false\n  opob_settings: []\n"
                                  "  kl_estimator: low_var_kl+\n",
                                  "config.yaml");
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(settings.train.advantage.gae.lambda, 0.5);
  EXPECT_EQ(settings.train.loss.m2po.budget, 0.1);
  EXPECT_EQ(settings.train.correction.importance->upper, 8);
  EXPECT_EQ(settings.train.ess->rule, EssLearningRateOptions::Rule::kLinear);
  EXPECT_FALSE(settings.train.opob.has_value());
  EXPECT_TRUE(settings.train.kl.loss_estimator.straight_through);
  EXPECT_NE(ToYaml(settings).find("  loss_settings: [\"budget=0.1\"]\n"), std::string::npos);
}

TEST(SettingsTest, AnErrorInAnOptionNamesItsKeyAndTheNearest) {
  EXPECT_EQ(OverrideError("train.loss=gsp").find("train.loss = gsp: must be one of cispo, "), 0U);
  EXPECT_NE(OverrideError("train.loss=gsp").find("(nearest: gspo)"), std::string::npos);
  EXPECT_EQ(OverrideError("train.loss=grpo"),
            "train.loss = grpo: is an advantage here (train.advantage=grpo train.loss=ppo)");
  EXPECT_EQ(OverrideError("train.loss.clip_hihg=0.3"),
            "unknown key train.loss.clip_hihg (nearest: clip_high; train.loss = ppo has clip_low, "
            "clip_high, dual_clip, max_log_ratio)");
  EXPECT_EQ(OverrideError("train.loss.clip_high=-1"), "train.loss.clip_high = -1: must be >= 0");
  EXPECT_EQ(OverrideError("train.loss_settings=[clip_high=x]"),
            "train.loss.clip_high = x: must be a number");
  EXPECT_EQ(OverrideError("train.loss_settings=[clip_high=1, clip_high=2]"),
            "train.loss.clip_high = 2: is given twice");
  EXPECT_EQ(OverrideError("train.reduction.x=1").find("unknown key train.reduction.x"), 0U);
  EXPECT_EQ(OverrideError("train.kl_estimator=k9")
                .find("train.kl_estimator = k9: must be one of k1, k2, k3, abs, "),
            0U);
  EXPECT_EQ(YamlError("train:\n  loss:\n    name: ppo\n    clip: 1\n")
                .find("x.yaml:2: unknown key train.loss.clip (nearest: clip_low; "),
            0U);
  EXPECT_EQ(YamlError("train:\n  loss: {name: [a]}\n"),
            "x.yaml:2: train.loss: must hold name and options, each with one value");
  EXPECT_EQ(YamlError("train:\n  beta1: {a: 1}\n"),
            "x.yaml:2: train.beta1: must be one value, not a block");
}

TEST(SettingsTest, RulesSpanFields) {
  const auto error = [](const std::vector<std::string>& overrides) {
    const auto settings = LoadSettings("math-4b", overrides);
    return settings.ok() ? std::string("accepted") : settings.status().message();
  };
  EXPECT_EQ(error({}), "accepted");
  EXPECT_EQ(error({"pool.max_groups=5"}).find("pool.max_groups = 5: must be 0 or >= "), 0U);
  EXPECT_EQ(error({"prefix.max_tokens=8"}).find("prefix.max_tokens = 8: must be >= "), 0U);
  EXPECT_EQ(error({"tools.use=code_interpreter", "generation.mean_tokens=30"}),
            "generation.mean_tokens = 30: must be 0 with tools.use (a prescribed length leaves no "
            "turns)");
  EXPECT_EQ(error({"batch.num_groups=1000000", "supply.threshold=1000"}).find("supply.threshold"),
            0U);
  EXPECT_EQ(error({"train.kl_target=0.1"}).find("train.kl_target = 0.1: steers "), 0U);
  EXPECT_EQ(error({"train.opob_settings=scope=minibatch"}),
            "unknown key train.opob.scope (train.opob = false has no options)");
  EXPECT_EQ(error({"train.ess_learning_rate=true", "train.ess_settings=rule"}),
            "train.ess_settings = rule: must be name=value");
}

TEST(SettingsTest, AnUnknownPresetNamesTheNearest) {
  const auto settings = LoadSettings("math-4", {});
  ASSERT_FALSE(settings.ok());
  EXPECT_EQ(settings.status().message(),
            "no preset or file named math-4 (nearest preset: math-4b; all presets: pace config "
            "--list)");
}

TEST(SettingsTest, EveryPresetLoadsAndReadsBackToItself) {
  for (const Preset& preset : Presets()) {
    const auto settings = LoadSettings(std::string(preset.name), {});
    ASSERT_TRUE(settings.ok()) << preset.name << ": " << settings.status().message();
    Settings again;
    const std::string yaml = ToYaml(*settings);
    const Status status = ApplyYaml(again, yaml, "again");
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(ToYaml(again), yaml) << preset.name;
  }
}

TEST(SettingsTest, AFileMayStartFromAPreset) {
  Settings settings;
  ASSERT_TRUE(ApplyYaml(settings, "supply: {threshold: 3}\npreset: math-4b\n", "x.yaml").ok());
  EXPECT_EQ(settings.supply.threshold, 3);
  EXPECT_EQ(settings.batch.num_groups, 12);
  EXPECT_EQ(YamlError("preset: nosuch\n").find("x.yaml:1: no preset"), 0U);
}

TEST(SettingsTest, TheDefaultsAreTheDocumentedOnes) {
  const AdmissionOptions admission;
  EXPECT_EQ(admission.TargetOccupancy(12), 12);
  EXPECT_EQ(admission.Window(12), 512);
  EXPECT_EQ(admission.Window(96), 3072);
  EXPECT_EQ(admission.beta, 0.9);
  EXPECT_EQ(admission.max_budget, 0.9);
  EXPECT_EQ(admission.gamma, 4);
  EXPECT_EQ(admission.min_observations, 32);
  EXPECT_EQ(SupplyOptions().MaxOutstanding(12), 108);
}

// Adding, renaming or removing a key of the controller is a decision, not an
// accident.
TEST(SettingsTest, TheControllersKeysArePinned) {
  Settings settings;
  std::string keys;
  for (const Section& section : settings.Sections()) {
    if (section.name == "model") break;  // the cost model follows
    for (const Field& field : section.fields) keys += section.name + "." + field.key() + " ";
  }
  EXPECT_EQ(
      keys,
      "run.seed run.num_steps run.checkpoint_every run.evaluate_every run.evaluate_at_start "
      "batch.num_groups batch.group_size batch.num_updates batch.shuffle "
      "supply.policy supply.threshold supply.bound supply.over_sampling supply.sync_interval "
      "supply.requeue supply.max_attempts "
      "admission.policy admission.target_occupancy admission.target_batches admission.beta "
      "admission.max_budget admission.reserve_batch admission.wait_weight admission.wait_measure "
      "admission.generation_weight "
      "admission.gamma admission.unscored_weight admission.weight_scope admission.cutoff "
      "admission.window "
      "admission.min_observations admission.ties admission.num_strata admission.k "
      "admission.k_measure "
      "admission.observe admission.python admission.timeout admission.start_timeout "
      "pool.max_groups pool.max_bytes pool.draw_order "
      "prefix.min_tokens prefix.max_tokens ");
}

TEST(SettingsTest, EqualRewardsAreSkippedOnlyWithoutAGradient) {
  const auto error = [](const char* assignment) {
    return LoadSettings("tiny", {"train.skip_equal_rewards=true", assignment}).status().message();
  };
  EXPECT_EQ(error("train.entropy_bonus=0.01"),
            "train.skip_equal_rewards = true: train.entropy_bonus must be 0, or groups of equal "
            "rewards have a gradient");
  for (const char* assignment :
       {"train.advantage=rloo", "train.loss=kl_cov", "train.kl_coef=0.1"}) {
    EXPECT_EQ(error(assignment).rfind("train.skip_equal_rewards = true: train.", 0), 0u)
        << error(assignment);
  }
  EXPECT_EQ(error("train.loss=m2po"), "");
}

TEST(SettingsTest, EveryKeyIsDescribed) {
  Settings settings;
  const std::string description = DescribeSettings();
  for (const Section& section : settings.Sections()) {
    for (const Field& field : section.fields) {
      EXPECT_FALSE(field.doc().empty()) << section.name << "." << field.key();
      EXPECT_NE(description.find("`" + section.name + "." + field.key() + "`"), std::string::npos);
    }
  }
  for (const std::string_view name : PolicyLossNames()) {
    LossOptions loss = *LossNamed(name);
    for (const Field& option : loss.Fields()) {
      EXPECT_FALSE(option.doc().empty()) << name << "." << option.key();
      EXPECT_NE(description.find("`train.loss." + option.key() + "`"), std::string::npos);
    }
  }
  EXPECT_NE(description.find("Options of `train.opob: true`"), std::string::npos);
}

std::string JsonError(const std::string& json) {
  const auto options = AdmissionFromJson(json, "c.json");
  return options.ok() ? "accepted" : options.status().message();
}

TEST(AdmissionJsonTest, ReadsTheFormBesideATrace) {
  const auto options = AdmissionFromJson(
      R"({"config": {"policy": "stale_k", "k": 1.0, "target_occupancy": 12, "window": null}})",
      "c.json");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->policy, AdmissionKind::kStaleK);
  EXPECT_EQ(options->k, 1);
  EXPECT_EQ(options->target_occupancy, 12);
  EXPECT_FALSE(options->window.has_value());
}

TEST(AdmissionJsonTest, IsStrict) {
  EXPECT_EQ(JsonError(R"({"config": {"betta": 1}})").find("c.json: "), 0U);
  EXPECT_NE(JsonError(R"({"config": {"betta": 1}})").find("nearest: beta"), std::string::npos);
  EXPECT_NE(JsonError(R"({"config": {"beta": "0.9"}})").find("config.beta"), std::string::npos);
  EXPECT_NE(JsonError(R"({"config": {"beta": NaN}})").find("beta"), std::string::npos);
  EXPECT_NE(JsonError(R"({"config": {"beta": 1e999}})").find("beta"), std::string::npos);
  EXPECT_NE(JsonError(R"({"config": {"beta": 2}})").find("must be <= 1"), std::string::npos);
  EXPECT_NE(JsonError(R"({"config": {"window": 12.5}})").find("window"), std::string::npos);
  EXPECT_NE(JsonError(R"({"config": {"window": -1}})").find("must be >= 1"), std::string::npos);
  EXPECT_NE(JsonError(R"({"config": {"beta": 0.1, "beta": 0.2}})").find("twice"),
            std::string::npos);
  for (const char* bad :
       {"", "{", "[]", "{}", "null", R"({"config": 3})", R"({"config": {})", R"({"config": {}} x)",
        R"({"config": {"beta": [1]}})", R"({"config": {"beta": {}}})"}) {
    const std::string error = JsonError(bad);
    EXPECT_EQ(error.find("c.json: "), 0U) << bad << " -> " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace pace
