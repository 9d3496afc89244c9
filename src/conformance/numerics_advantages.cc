// Family advantages.
#include <algorithm>
#include <iterator>

#include "conformance/case_file.h"
#include "conformance/numerics_case.h"
#include "train/advantage/advantages.h"

namespace pace {
namespace {

// verl's names; their variants are settings of ours.
struct Estimator {
  std::string_view theirs;
  std::string_view ours;
  std::string_view settings = {};  // as NumericsCase::Settings reads them
};

constexpr Estimator kEstimators[] = {
    {"grpo", "grpo", "standardize=norm_adv_by_std_in_grpo epsilon=epsilon"},
    {"grpo_vectorized", "grpo", "standardize=norm_adv_by_std_in_grpo epsilon=epsilon"},
    {"grpo_passk", "pass_at_k", "standardize=norm_adv_by_std_in_grpo epsilon=epsilon"},
    {"dr_grpo", "dr_grpo", "epsilon=epsilon"},
    {"rloo", "rloo"},
    {"rloo_vectorized", "rloo", "single:=zero"},
    {"reinforce_plus_plus", "reinforce_plus_plus", "gamma=gamma cross_masked:=true compat"},
    {"reinforce_plus_plus_pre7300", "reinforce_plus_plus",
     "gamma=gamma cross_masked:=false compat"},
    {"reinforce_plus_plus_baseline", "reinforce_plus_plus_baseline", "compat"},
    {"gae", "gae", "gamma=gamma lambda=lam compat"},
    {"remax", "remax"},
    {"opo", "opo"},
    {"gpg", "gpg"},
};

}  // namespace

void CheckAdvantages(NumericsCase& entry) {
  const std::string algorithm = entry.ConfigText("algorithm");
  const auto* const estimator = std::ranges::find(kEstimators, algorithm, &Estimator::theirs);
  if (estimator == std::end(kEstimators)) {
    return entry.SkipBecause(Concat("we have no estimator `", algorithm, "`"));
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
  const std::vector<double> values = entry.OptionalNumbers("values");
  const std::vector<double> baselines = entry.OptionalNumbers("reward_baselines");
  batch.values = values;
  batch.baselines = baselines;
  // The vectorised form computes group statistics in float32.
  if (estimator->theirs == "grpo_vectorized") entry.Use(kSinglePrecision);
  const auto made = MakeAdvantageEstimator(estimator->ours, entry.Settings(estimator->settings));
  if (!made.ok()) return entry.Fail(made.status().message());
  const Result<Advantages> result = (*made)->Estimate(batch);
  if (!entry.Check(result.status())) return;
  entry.ExpectAll("advantages", result->advantages, padded.mask);
  entry.ExpectAll("returns", result->returns, padded.mask);
  for (size_t i = 0; i < padded.mask.size(); ++i) {
    if (padded.mask[i] == 0 && result->advantages[i] != 0) {
      entry.Fail(Concat("advantages[", i, "]: ours ", result->advantages[i], " where masked"));
    }
  }
}

}  // namespace pace
