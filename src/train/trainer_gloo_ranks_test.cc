// The gradient of a minibatch on several ranks, connected over gloo, is that of one rank: for every
// loss with every advantage and with every reduction, and for each setting that needs something of
// the whole minibatch.
//
// Each objective runs once, with shards, number of ranks and network taking turns.
// PACE_LONG_TESTS=1 runs every combination.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ranks/gloo_threads.h"
#include "train/advantage/advantages.h"
#include "train/loss/losses.h"
#include "train/trainer_on_ranks.h"

namespace pace {
namespace {

struct Objective {
  std::string name;
  std::function<void(RankedRun&)> set;
};

void AddLosses(std::vector<Objective>& all) {
  for (const std::string_view loss : PolicyLossNames()) {
    for (const std::string_view advantage : AdvantageEstimatorNames()) {
      all.push_back({Concat(loss, " ", advantage), [loss, advantage](RankedRun& run) {
                       run.options.loss = *LossNamed(loss);
                       run.options.advantage = *AdvantageNamed(advantage);
                     }});
    }
    for (const ReductionMode mode :
         {ReductionMode::kTokenMean, ReductionMode::kTokenSum, ReductionMode::kSequenceMeanTokenSum,
          ReductionMode::kSequenceMeanTokenMean, ReductionMode::kSequenceMeanTokenSumNorm}) {
      all.push_back({Concat(loss, " ", NameOf(mode)), [loss, mode](RankedRun& run) {
                       run.options.loss = *LossNamed(loss);
                       run.options.reduction = mode;
                       run.options.horizon = 12;
                     }});
    }
  }
}

void AddCorrections(std::vector<Objective>& all) {
  for (const std::string_view correction : CorrectionNames()) {
    for (const RatioLevel level : {RatioLevel::kToken, RatioLevel::kSequence}) {
      const char* const name = level == RatioLevel::kToken ? " of tokens" : " of sequences";
      all.push_back({Concat(correction, name), [correction, level](RankedRun& run) {
                       run.options.correction = *CorrectionNamed(correction);
                       std::optional<ImportanceOptions>& importance =
                           run.options.correction.importance;
                       if (!importance.has_value()) return;
                       importance->level = level;
                       importance->normalize = true;
                       if (level == RatioLevel::kToken) return;
                       // Ratios of whole sequences are far from 1.
                       importance->upper = 50;
                       if (importance->lower.has_value()) importance->lower = 0.02;
                     }});
    }
  }
  const std::map<std::string, double> bounds = {
      {"token_k1", 2}, {"seq_sum_k1", 50}, {"seq_mean_k3", 2}, {"seq_max_k2", 2}};
  for (const auto& [criterion, bound] : bounds) {
    all.push_back({Concat("rejection ", criterion), [criterion, bound](RankedRun& run) {
                     run.options.correction.rejection = {*RejectionCriterionFromName(criterion)};
                     run.options.correction.rejection.front().upper = bound;
                   }});
  }
}

void AddSettings(std::vector<Objective>& all) {
  const std::map<std::string, std::function<void(RankedRun&)>> settings = {
      {"kl", [](RankedRun& r) { r.options.kl.loss_coefficient = 0.1; }},
      {"kl in the reward", [](RankedRun& r) { r.options.kl.reward_coefficient = 0.1; }},
      {"ess", [](RankedRun& r) { r.options.ess.emplace(); }},
      {"opob", [](RankedRun& r) { r.options.opob.emplace(); }},
      {"entropy", [](RankedRun& r) { r.options.entropy_bonus = 0.01; }},
      {"clip", [](RankedRun& r) { r.options.max_grad_norm = 1e-3; }},
      {"proximal", [](RankedRun& r) { r.options.reference = RatioReference::kProximal; }},
      {"skip", [](RankedRun& r) { r.options.skip_equal_rewards = true; }},
      {"decay", [](RankedRun& r) { r.options.adamw.weight_decay = 0.1; }},
      {"recomputed layers", [](RankedRun& r) { r.network.recompute_layers = true; }},
      {"value trunk",
       [](RankedRun& r) {
         r.options.advantage = *AdvantageNamed("gae");
         r.options.value.trains_trunk = true;
       }},
  };
  for (const auto& [name, set] : settings) all.push_back({name, set});
}

std::vector<Objective> Objectives() {
  std::vector<Objective> all;
  AddLosses(all);
  AddCorrections(all);
  AddSettings(all);
  return all;
}

constexpr std::array<Architecture, 2> kNetworks = {Architecture::kQwen3, Architecture::kQwen3Moe};
constexpr std::array<int64_t, 3> kNumRanks = {2, 3, 4};

bool IsChosen(size_t objective, ShardMode mode, Architecture network, int64_t num_ranks) {
  if (std::getenv("PACE_LONG_TESTS") != nullptr) return true;
  return mode == kModes[objective % 4] && num_ranks == kNumRanks[objective / 4 % 3] &&
         network == kNetworks[objective / 12 % 2];
}

// What the ranks of a group do one after another.
struct RankedCase {
  std::string name;
  size_t objective;
  RankedRun run;
};

std::vector<RankedCase> CasesOf(Architecture network, int64_t num_ranks) {
  const std::vector<Objective> objectives = Objectives();
  std::vector<RankedCase> cases;
  for (size_t i = 0; i < objectives.size(); ++i) {
    for (const ShardMode mode : kModes) {
      if (!IsChosen(i, mode, network, num_ranks)) continue;
      RankedCase found{.name = Concat(objectives[i].name, ", train.shard = ", ShardModeName(mode)),
                       .objective = i,
                       .run = {}};
      found.run.architecture = network;
      found.run.options.token_budget = 40;
      found.run.options.shard = mode;
      objectives[i].set(found.run);
      cases.push_back(std::move(found));
    }
  }
  return cases;
}

using Place = std::tuple<Architecture, int64_t>;

class TrainerGlooRanksTest : public testing::TestWithParam<Place> {};

TEST_P(TrainerGlooRanksTest, EveryObjectiveHasTheGradientOfTheWholeMinibatch) {
  const int64_t num_ranks = std::get<1>(GetParam());
  const std::vector<RankedCase> cases = CasesOf(std::get<0>(GetParam()), num_ranks);
  double worst = 0;
  std::string worst_name;
  RunGlooRanks(num_ranks, {}, [&](Communicator& ranks) {
    std::map<size_t, Outcome> on_one_rank;
    for (const RankedCase& each : cases) {
      const Outcome several = OnRank(each.run, ranks);
      if (ranks.rank() > 0) continue;
      if (!on_one_rank.contains(each.objective)) {
        on_one_rank.emplace(each.objective, OnOneRank(each.run));
      }
      const Outcome& one = on_one_rank.at(each.objective);
      EXPECT_GT(GradientSize(one), 0) << each.name;
      const double distance = GradientDistance(one, several);
      EXPECT_LT(distance, 1e-6) << each.name;
      ExpectSameMetrics(one, several, each.name);
      if (distance < worst) continue;
      worst = distance;
      worst_name = each.name;
    }
  });
  std::printf("%zu minibatches, largest difference %.1e (%s)\n", cases.size(), worst,
              worst_name.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, TrainerGlooRanksTest,
                         testing::Combine(testing::ValuesIn(kNetworks),
                                          testing::ValuesIn(kNumRanks)),
                         [](const testing::TestParamInfo<Place>& place) {
                           const bool dense = std::get<0>(place.param) == Architecture::kQwen3;
                           return Concat(dense ? "Dense" : "Experts", "On",
                                         std::get<1>(place.param), "Ranks");
                         });

}  // namespace
}  // namespace pace
