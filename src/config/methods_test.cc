#include "config/methods.h"

#include <gtest/gtest.h>

#include "config/presets.h"

namespace pace {
namespace {

Settings Load(const std::string& name) {
  auto settings = LoadSettings(name, {});
  EXPECT_TRUE(settings.ok()) << settings.status().message();
  return settings.ok() ? *settings : Settings();
}

TEST(MethodsTest, APolicyInPythonIsNotReplacedSilently) {
  Settings settings = Load("small");
  ASSERT_TRUE(ApplyOverride(settings, "admission.policy=python:mine.py:Mine").ok());
  EXPECT_EQ(
      ApplyMethod(settings, "async", "--method").status().message(),
      "admission.policy = python:mine.py:Mine: --method async names a policy of its own (give "
      "one of the two)");
}

TEST(PresetsTest, EveryPresetLoadsAndEveryMethodItNamesApplies) {
  for (const Preset& preset : Presets()) {
    const Settings settings = Load(std::string(preset.name));
    for (const std::string& method : settings.compare.methods) {
      const auto applied = ApplyMethod(settings, method);
      EXPECT_TRUE(applied.ok()) << preset.name << ": " << applied.status().message();
      EXPECT_TRUE(ReferenceSeconds(settings.compare, method).ok());
    }
  }
}

TEST(PresetsTest, ThePublishedSetUpsKeepTheirNumbers) {
  const Settings math = Load("math-8b");
  EXPECT_EQ(math.batch.num_groups, 12);
  EXPECT_EQ(math.supply.MaxOutstanding(12), 108);
  EXPECT_EQ(math.cluster.rollout_gpus, 12);
  EXPECT_EQ(math.model.hidden, 4096);
  const Settings moe = Load("moe-30b");
  EXPECT_EQ(moe.supply.MaxOutstanding(moe.batch.num_groups), 864);
  EXPECT_EQ(moe.cluster.NumEngines(), 6);
  const Settings tools = Load("retool-4b");
  EXPECT_EQ(tools.supply.MaxOutstanding(tools.batch.num_groups), 72);
  EXPECT_EQ(tools.prefix.max_tokens, 2048);
}

TEST(MethodsTest, SyncOnSixGpusTakesItsOwnBatchAndLayout) {
  const auto sync = ApplyMethod(Load("time-6gpu"), "sync");
  ASSERT_TRUE(sync.ok()) << sync.status().message();
  EXPECT_EQ(sync->batch.num_groups, 32);
  EXPECT_EQ(sync->batch.num_updates, 4);
  EXPECT_EQ(sync->supply.threshold, 0);
  EXPECT_EQ(sync->cluster.layout, Layout::kColocated);
  EXPECT_EQ(sync->cluster.NumEngines(), 6);
  EXPECT_TRUE(sync->compare.methods.empty());
  const auto raw = ApplyMethod(Load("time-6gpu"), "raw");
  ASSERT_TRUE(raw.ok());
  EXPECT_EQ(raw->batch.num_groups, 8);
  EXPECT_FALSE(raw->admission.UsesPrefixScores());
}

TEST(MethodsTest, BoundsComeFromTheName) {
  const auto stale = ApplyMethod(Settings(), "stale-2.5");
  ASSERT_TRUE(stale.ok());
  EXPECT_EQ(stale->admission.policy, AdmissionKind::kStaleK);
  EXPECT_EQ(stale->admission.k, 2.5);
  const auto oldest = ApplyMethod(Settings(), "oldest-3");
  ASSERT_TRUE(oldest.ok());
  EXPECT_EQ(oldest->admission.policy, AdmissionKind::kOldestToken);
}

TEST(MethodsTest, TheNumberStandsWhereverTheRuleNeedsIt) {
  const auto prime = ApplyMethod(Settings(), "prime-3");
  ASSERT_TRUE(prime.ok()) << prime.status().message();
  EXPECT_EQ(prime->supply.policy, SupplyKind::kCancelling);
  EXPECT_EQ(prime->supply.bound, 3);
  EXPECT_EQ(prime->admission.k, 3);
  const auto april = ApplyMethod(Settings(), "april-1.5");
  ASSERT_TRUE(april.ok());
  EXPECT_EQ(april->supply.MaxGroups(12), 18);
  const auto areal = ApplyMethod(Settings(), "areal-4");
  ASSERT_TRUE(areal.ok());
  EXPECT_EQ(areal->supply.MaxGroups(12), 60);
  EXPECT_EQ(areal->train.loss.kind, LossKind::kDecoupledPpo);
  EXPECT_FALSE(ApplyMethod(Settings(), "areal-1.5").ok());
  EXPECT_FALSE(ApplyMethod(Settings(), "april-0.5").ok());
  EXPECT_FALSE(ApplyMethod(Settings(), "miles-4").ok());  // less than a batch
  for (const char* method : {"dora-2", "nemo-4", "miles-24", "fair", "vcpo", "dis"}) {
    EXPECT_TRUE(ApplyMethod(Settings(), method).ok()) << method;
  }
}

TEST(MethodsTest, BadNamesAndEntriesAreRefusedInOneLine) {
  const auto unknown = ApplyMethod(Settings(), "efective");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.status().message().find("nearest: effective"), std::string::npos);
  EXPECT_FALSE(ApplyMethod(Settings(), "stale-").ok());
  EXPECT_FALSE(ApplyMethod(Settings(), "stale-nan").ok());
  EXPECT_FALSE(ApplyMethod(Settings(), "stale--1").ok());
  Settings settings;
  settings.compare.overrides = {"sync:cluster.layot=colocated"};
  EXPECT_TRUE(ApplyMethod(settings, "async").ok());
  const auto typo = ApplyMethod(settings, "sync");
  ASSERT_FALSE(typo.ok());
  EXPECT_NE(typo.status().message().find("cluster.layout"), std::string::npos);
  settings.compare.overrides = {"cluster.layout=colocated"};
  EXPECT_FALSE(ApplyMethod(settings, "sync").ok());
}

TEST(MethodsTest, PaceIsAnotherNameOfEffectiveWhereverAMethodIsNamed) {
  Settings settings = Load("time-6gpu");
  settings.compare.overrides = {"effective:admission.gamma=2", "pace:admission.beta=0.5"};
  const auto pace = ApplyMethod(settings, "pace");
  const auto effective = ApplyMethod(settings, "effective");
  ASSERT_TRUE(pace.ok()) << pace.status().message();
  ASSERT_TRUE(effective.ok());
  EXPECT_EQ(ToYaml(*pace), ToYaml(*effective));
  EXPECT_EQ(pace->admission.gamma, 2);
  EXPECT_EQ(pace->admission.beta, 0.5);
  EXPECT_EQ(**ReferenceSeconds(settings.compare, "pace"), 28.22);
  EXPECT_TRUE(LoadSettings("tiny", {"admission.variant=pace"}).ok());
}

TEST(MethodsTest, AnErrorNamesWhatTheUserTypedAndEveryMethod) {
  const auto unknown = ApplyMethod(Settings(), "pce", "--method");
  ASSERT_FALSE(unknown.ok());
  const std::string& message = unknown.status().message();
  EXPECT_TRUE(message.starts_with("--method pce: ")) << message;
  EXPECT_EQ(message.find("compare.methods"), std::string::npos);
  for (const Method& method : Methods()) {
    EXPECT_NE(message.find(method.name), std::string::npos) << method.name;
    EXPECT_NE(DescribeMethods().find(method.doc), std::string::npos) << method.name;
  }
}

TEST(MethodsTest, TitlesAreWhatPagesShow) {
  EXPECT_EQ(MethodTitle("effective"), "PACE");
  EXPECT_EQ(MethodTitle("pace"), "PACE");
  EXPECT_EQ(MethodTitle("async"), "Async");
  EXPECT_EQ(MethodTitle("stale-2.5"), "Stale-2.5");
  EXPECT_EQ(MethodTitle("gamma-2"), "gamma-2");
}

TEST(MethodsTest, ReferenceTimesAreReadByMethod) {
  const CompareOptions compare = Load("time-6gpu").compare;
  EXPECT_EQ(**ReferenceSeconds(compare, "effective"), 28.22);
  EXPECT_FALSE(ReferenceSeconds(compare, "waiting")->has_value());
  CompareOptions broken;
  broken.reference = {"sync:soon"};
  EXPECT_FALSE(ReferenceSeconds(broken, "sync").ok());
}

TEST(ClusterOptionsTest, ShapesThatCannotBeAreRefused) {
  EXPECT_FALSE(LoadSettings("math-4b", {"model.num_kv_heads=7"}).ok());
  EXPECT_FALSE(LoadSettings("math-4b", {"model.num_experts=8"}).ok());
  EXPECT_FALSE(LoadSettings("math-4b", {"cluster.tensor_parallel=3"}).ok());
  EXPECT_FALSE(LoadSettings("math-4b", {"cluster.decode_costs=table"}).ok());
  EXPECT_FALSE(LoadSettings("math-4b", {"workload.min_tokens=9000"}).ok());
  EXPECT_FALSE(LoadSettings("math-4b", {"workload.length=file"}).ok());
  EXPECT_FALSE(LoadSettings("retool-4b", {"workload.tool_tokens=2000"}).ok());
}

TEST(MethodsTest, LeanSkipsGroupsWithoutAGradientWhereTheyHaveNone) {
  for (const char* method : {"lean", "lean-m2po"}) {
    const auto plain = ApplyMethod(*LoadSettings("tiny", {}), method);
    ASSERT_TRUE(plain.ok()) << plain.status().message();
    EXPECT_TRUE(plain->train.skip_equal_rewards);
    const auto with_kl = ApplyMethod(*LoadSettings("tiny", {"train.kl_coef=0.01"}), method);
    ASSERT_TRUE(with_kl.ok()) << with_kl.status().message();
    EXPECT_FALSE(with_kl->train.skip_equal_rewards);
  }
}

}  // namespace
}  // namespace pace
