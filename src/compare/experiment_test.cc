#include "compare/experiment.h"

#include <gtest/gtest.h>

#include <set>

namespace pace {
namespace {

constexpr char kGood[] = R"(
title: Two ways
base: tiny
set: [run.num_steps=7]
seeds: 3
baseline: async
arms:
  - async
  - {name: gamma-2, method: effective, set: [admission.gamma=2]}
claims:
  - {says: waits less, value: waiting, of: gamma-2, over: async, at_most: 1, paper: 0.3}
)";

constexpr char kRatio[] = "value: waiting, of: gamma-2, over: async";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ExperimentTest, ReadsArmsSettingsAndClaims) {
  const Result<Experiment> experiment = ParseExperiment(kGood, "experiments/two.yaml");
  ASSERT_TRUE(experiment.ok()) << experiment.status().message();
  EXPECT_EQ(experiment->name, "two");
  EXPECT_EQ(experiment->num_seeds, 3);
  EXPECT_EQ(experiment->first_seed, 1);
  EXPECT_EQ(ParseExperiment(With("seeds: 3", "seeds: 3\nfirst_seed: 101"), "e")->last_seed(), 103);
  ASSERT_EQ(experiment->arms.size(), 2u);
  EXPECT_EQ(experiment->arms[0].method, "async");
  ASSERT_EQ(experiment->claims.size(), 1u);
  EXPECT_EQ(experiment->claims[0].at_most, 1);
  EXPECT_EQ(experiment->claims[0].paper, 0.3);
  const Result<Settings> settings = SettingsOf(*experiment, {"gamma-2", 2}, {"batch.num_groups=4"});
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  EXPECT_EQ(settings->run.num_steps, 7);
  EXPECT_EQ(settings->run.seed, 2);
  EXPECT_EQ(settings->admission.gamma, 2);
  EXPECT_EQ(settings->batch.num_groups, 4);
}

TEST(ExperimentTest, ReadsRecoveredSharesAndFamilies) {
  const Result<Experiment> experiment = ParseExperiment(
      With("  - async\n", "  - async\n  - sync\n") +
          "  - {says: half, recovered: {value: area, of: gamma-2, from: async, to: sync}, "
          "at_least: 0.5, family: cost}\n",
      "e.yaml");
  ASSERT_TRUE(experiment.ok()) << experiment.status().message();
  const Claim& claim = experiment->claims[1];
  EXPECT_TRUE(claim.is_recovered_share());
  EXPECT_FALSE(experiment->claims[0].is_recovered_share());
  EXPECT_EQ(claim.value, "area");
  EXPECT_EQ(claim.of, "gamma-2");
  EXPECT_EQ(claim.from, "async");
  EXPECT_EQ(claim.to, "sync");
  EXPECT_EQ(claim.at_least, 0.5);
  EXPECT_EQ(claim.family, "cost");
}

TEST(ExperimentTest, TheExperimentsOfTheFolderAreBuiltIn) {
  std::set<std::string> names;
  for (const BuiltInExperiment& known : BuiltInExperiments()) {
    names.emplace(known.name);
    const auto parsed = ParseExperiment(known.yaml, std::string(known.name));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    for (const Arm& arm : parsed->arms) {
      EXPECT_TRUE(SettingsOf(*parsed, {arm.name, 1}, {}).ok()) << known.name << " " << arm.name;
    }
  }
  EXPECT_TRUE(names.contains("main"));
  EXPECT_TRUE(names.contains("mini"));
  // A name that no file has: what is found lies inside the program.
  EXPECT_EQ(ParseExperiment(kGood, "a/b/two.yaml")->name, "two");
}

TEST(ExperimentTest, ARepeatedKeyAndASecondDocumentAreRefused) {
  EXPECT_FALSE(ParseExperiment(With("seeds: 3", "seeds: 3\nseeds: 4"), "e.yaml").ok());
  EXPECT_FALSE(ParseExperiment(With("at_most: 1,", "at_most: 1, at_most: 2,"), "e.yaml").ok());
  EXPECT_FALSE(ParseExperiment(std::string(kGood) + "---\nbase: tiny\n", "e.yaml").ok());
}

TEST(ExperimentTest, AFileThatCannotBeLookedForIsNotFound) {
  const auto missing = LoadExperiment(std::string(5000, 'x'));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
}

TEST(ExperimentTest, SaysWhatIsWrongInOneLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {With("baseline: async", "baseline: sink"), "baseline"},
      {With("of: gamma-2", "of: gama"), "no such arm"},
      {With("value: waiting", "value: wating"), "claims.value"},
      {With("seeds: 3", "seeds: 0"), "seeds"},
      {With("seeds: 3", "first_seed: 0"), "first_seed"},
      {With(kRatio, "recovered: {value: waiting, of: gamma-2, from: async, to: sink}"),
       "claims.to"},
      {With(kRatio, "recovered: {value: waiting, of: gamma-2, from: async, to: async}"), "two"},
      {With(kRatio, "recovered: {value: waiting, of: gamma-2, from: async}"), "two"},
      {With(kRatio, "recovered: {valu: waiting}"), "claims.recovered.valu"},
      {With(kRatio, "recovered: waiting"), "blocks"},
      {With("at_most: 1, paper: 0.3", "family: f"), "claims.family"},
      {With("title:", "titel:"), "unknown key"},
      {With("name: gamma-2", "name: a/b"), "letters, digits"},
      {With("name: gamma-2", "name: async"), "twice"},
      {With("arms:", "arms: ["), "not YAML"},
      {With("base: tiny", "base: \"\""), "base"},
      {"- a list", "must hold"},
  };
  for (const auto& [yaml, part] : cases) {
    const Result<Experiment> parsed = ParseExperiment(yaml, "e.yaml");
    ASSERT_FALSE(parsed.ok()) << part;
    EXPECT_NE(parsed.status().message().find(part), std::string::npos) << parsed.status().message();
    EXPECT_NE(parsed.status().message().find("e.yaml"), std::string::npos);
    EXPECT_EQ(parsed.status().message().find('\n'), std::string::npos);
  }
}

TEST(ExperimentTest, OverridesOfAComparisonComeAfterThoseOfItsArms) {
  const Experiment experiment = ParseExperiment(kGood, "e.yaml").value();
  const Experiment changed = WithOverrides(experiment, {"admission.gamma=3"});
  EXPECT_EQ(SettingsOf(changed, {"gamma-2", 1}, {})->admission.gamma, 3);
}

TEST(ExperimentTest, AnUnknownSettingNamesTheArm) {
  const Result<Experiment> experiment =
      ParseExperiment(With("admission.gamma=2", "admission.gama=2"), "e.yaml");
  ASSERT_TRUE(experiment.ok());
  const Result<Settings> settings = SettingsOf(*experiment, {"gamma-2", 1}, {});
  ASSERT_FALSE(settings.ok());
  EXPECT_NE(settings.status().message().find("gamma-2"), std::string::npos);
}

}  // namespace
}  // namespace pace
