// Family advantages.
#include "conformance/case_file.h"
#include "conformance/numerics_case.h"
#include "train/advantage/advantages.h"

namespace pace {
namespace {

struct Estimator {
  std::string theirs;
  std::string_view ours;
  NamedSettings settings = {};
};

// verl's names; their variants are settings of ours.
std::optional<Estimator> EstimatorOf(const NumericsCase& entry) {
  const std::string name = entry.ConfigText("algorithm");
  const std::string compat = entry.has_quirk() ? "true" : "false";
  if (name == "grpo" || name == "grpo_vectorized" || name == "grpo_passk") {
    return Estimator{
        name, name == "grpo_passk" ? "pass_at_k" : "grpo",
        entry.Settings({{"standardize", "norm_adv_by_std_in_grpo"}, {"epsilon", "epsilon"}})};
  }
  if (name == "dr_grpo") {
    return Estimator{name, "dr_grpo", entry.Settings({{"epsilon", "epsilon"}})};
  }
  if (name == "rloo") return Estimator{name, "rloo"};
  if (name == "rloo_vectorized") return Estimator{name, "rloo", {{"single", "zero"}}};
  if (name == "reinforce_plus_plus" || name == "reinforce_plus_plus_pre7300") {
    NamedSettings settings = entry.Settings({{"gamma", "gamma"}});
    settings.push_back({"cross_masked", name == "reinforce_plus_plus" ? "true" : "false"});
    settings.push_back({"compat", compat});
    return Estimator{name, "reinforce_plus_plus", settings};
  }
  if (name == "reinforce_plus_plus_baseline") {
    return Estimator{name, "reinforce_plus_plus_baseline", {{"compat", compat}}};
  }
  if (name == "gae") {
    NamedSettings settings = entry.Settings({{"gamma", "gamma"}, {"lambda", "lam"}});
    settings.push_back({"compat", compat});
    return Estimator{name, "gae", settings};
  }
  if (name == "remax") return Estimator{name, "remax"};
  if (name == "opo") return Estimator{name, "opo"};
  if (name == "gpg") return Estimator{name, "gpg"};
  return std::nullopt;
}

}  // namespace

void CheckAdvantages(NumericsCase& entry) {
  const std::optional<Estimator> estimator = EstimatorOf(entry);
  if (!estimator.has_value()) {
    return entry.SkipBecause(Concat("we have no estimator `", entry.ConfigText("algorithm"), "`"));
  }
  const PaddedLayout padded = ReadLayout(entry);
  if (entry.failed()) return;
  const std::vector<double> token_rewards = entry.Numbers("token_level_rewards");
  if (token_rewards.size() != padded.mask.size()) {
    return entry.Fail("inputs.token_level_rewards: must have the size of the mask");
  }
  // The peer's scores sum all positions, masked or not.
  std::vector<double> rewards;
  for (size_t row = 0; row + 1 < padded.offsets.size(); ++row) {
    double sum = 0;
    for (int64_t i = padded.offsets[row]; i < padded.offsets[row + 1]; ++i) {
      sum += token_rewards[static_cast<size_t>(i)];
    }
    rewards.push_back(sum);
  }
  RewardBatch batch;
  batch.layout = padded.layout();
  batch.rewards = rewards;
  batch.token_rewards = token_rewards;
  std::vector<double> values;
  std::vector<double> baselines;
  if (!entry.Input("values").is_undefined()) values = entry.Numbers("values");
  if (!entry.Input("reward_baselines").is_undefined())
    baselines = entry.Numbers("reward_baselines");
  batch.values = values;
  batch.baselines = baselines;
  // The vectorised form computes group statistics in float32.
  if (estimator->theirs == "grpo_vectorized") entry.Use(kSinglePrecision);
  const auto made = MakeAdvantageEstimator(estimator->ours, estimator->settings);
  if (!made.ok()) return entry.Fail(made.status().message());
  const Result<Advantages> result = (*made)->Estimate(batch);
  if (!entry.Check(result.status())) return;
  entry.CompareAll("advantages", result->advantages, entry.Expected("advantages"), padded.mask);
  entry.CompareAll("returns", result->returns, entry.Expected("returns"), padded.mask);
  for (size_t i = 0; i < padded.mask.size(); ++i) {
    if (padded.mask[i] == 0 && result->advantages[i] != 0) {
      entry.Fail(Concat("advantages[", i, "]: ours ", result->advantages[i], " where masked"));
    }
  }
}

}  // namespace pace
