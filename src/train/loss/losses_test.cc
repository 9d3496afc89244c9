// What must hold for every loss in the list, and so for a new one by itself.
#include "train/loss/losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "train/advantage/advantages.h"
#include "train/correction/corrections.h"
#include "train/loss/policy_term.h"
#include "train/test_batch.h"

namespace pace {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kNumSeeds = 20;

struct Subject {
  std::string name;
  NamedSettings settings = {};
};

void PrintTo(const Subject& subject, std::ostream* stream) {
  *stream << subject.name;
  for (const NamedSetting& setting : subject.settings) {
    *stream << " " << setting.name << "=" << setting.value;
  }
}

// Every loss with its defaults, and settings that take other paths.
std::vector<Subject> Subjects() {
  std::vector<Subject> subjects;
  for (const std::string_view name : PolicyLossNames()) subjects.push_back({std::string(name)});
  const std::vector<Subject> more = {
      {"cispo", {{"clip_low", "0.2"}}},
      {"clip_cov", {{"cov_low", "0.1"}, {"fraction", "0.2"}}},
      {"decoupled_ppo", {{"level", "sequence"}, {"dual_clip", "1.1"}}},
      {"decoupled_ppo", {{"behavior_level", "sequence"}, {"behavior_action", "clamp"}}},
      {"decoupled_ppo", {{"behavior_upper", "1.2"}, {"behavior_lower", "0.8"}}},
      {"decoupled_ppo", {{"m2_threshold", "0.02"}, {"behavior_measure", "k3"}}},
      {"dppo", {{"divergence", "kl"}, {"divergence_high", "0.05"}}},
      {"geometric_mean", {{"clip_low", "0.1"}, {"clip_high", "0.05"}}},
      {"gspo", {{"clip_low", "0.2"}, {"clip_high", "0.2"}}},
      {"kl_cov", {{"fraction", "0.3"}}},
      {"m2po", {{"rule", "official"}}},
      {"m2po", {{"rule", "official"}, {"min_clip_low", "0.3"}, {"min_clip_high", "0.5"}}},
      {"ppo", {{"dual_clip", "1.5"}, {"max_log_ratio", "1"}}},
      {"topr", {{"level", "token"}, {"negative_weight", "0.5"}}},
  };
  subjects.insert(subjects.end(), more.begin(), more.end());
  return subjects;
}

class EveryLossTest : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<PolicyLoss>> made = MakePolicyLoss(GetParam().name, GetParam().settings);
    ASSERT_TRUE(made.ok()) << made.status().message();
    loss_ = std::move(made).value();
  }

  ReductionWeights Weigh(const BatchData& data, const MinibatchTotals& totals) const {
    const Result<ReductionWeights> weights =
        WeighTokens(data.layout(), totals, {.mode = loss_->paper_reduction(), .horizon = 16});
    EXPECT_TRUE(weights.ok());
    return *weights;
  }
  LossResult Evaluate(const BatchData& data, const MinibatchTotals& totals) const {
    const Result<LossResult> result = loss_->Evaluate(data.tokens(), Weigh(data, totals));
    EXPECT_TRUE(result.ok()) << result.status().message();
    return *result;
  }
  LossResult Evaluate(const BatchData& data) const {
    return Evaluate(data, CountTotals(data.layout()));
  }

  std::unique_ptr<PolicyLoss> loss_;
};

// Expects the gradient of `batch` to be that of finite differences. A token may
// stand at a kink of the loss: M2PO's official bounds are set by one. There any
// slope between those of both sides will do. Returns the number of kinks.
int ExpectSlopes(const PolicyLoss& loss, TokenBatch batch, const ReductionWeights& weights) {
  constexpr double kStep = 1e-6;
  const LossResult at = *loss.Evaluate(batch, weights);
  const std::vector<double> original(batch.logprobs.begin(), batch.logprobs.end());
  std::vector<double> moved = original;
  batch.frozen_logprobs = original;
  batch.logprobs = moved;
  const auto loss_at = [&](size_t token, double logprob) {
    moved[token] = logprob;
    const double value = loss.Evaluate(batch, weights)->loss;
    moved[token] = original[token];
    return value;
  };
  int num_kinks = 0;
  for (size_t token = 0; token < moved.size(); ++token) {
    const double above = loss_at(token, original[token] + kStep);
    const double below = loss_at(token, original[token] - kStep);
    const double slope = (above - below) / (2 * kStep);
    const double right = (above - at.loss) / kStep;
    const double left = (at.loss - below) / kStep;
    const double scale = std::max(1.0, std::abs(slope));
    if (std::abs(right - left) < 1e-4 * scale) {
      EXPECT_NEAR(at.gradient[token], slope, 1e-7 * scale) << "token " << token;
      continue;
    }
    ++num_kinks;
    EXPECT_GE(at.gradient[token], std::min(left, right) - 1e-6 * scale) << "token " << token;
    EXPECT_LE(at.gradient[token], std::max(left, right) + 1e-6 * scale) << "token " << token;
  }
  return num_kinks;
}

TEST_P(EveryLossTest, TheGradientIsThatOfFiniteDifferences) {
  int num_kinks = 0;
  for (int seed = 0; seed < kNumSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const BatchData data = RandomBatch(static_cast<uint64_t>(seed));
    num_kinks += ExpectSlopes(*loss_, data.tokens(), Weigh(data, CountTotals(data.layout())));
  }
  EXPECT_LE(num_kinks, GetParam().name == "m2po" ? kNumSeeds : 0);
}

TEST_P(EveryLossTest, ImportanceWeightsScaleTheGradientAndMaskedOnesNeverMatter) {
  BatchData data = RandomBatch(11);
  std::vector<double> importance(data.mask.size(), kNaN);
  for (size_t token = 0; token < importance.size(); ++token) {
    if (data.mask[token] != 0) importance[token] = 0.5 + 0.1 * static_cast<double>(token % 7);
  }
  TokenBatch batch = data.tokens();
  batch.importance_weights = importance;
  const ReductionWeights weights = Weigh(data, CountTotals(data.layout()));
  ExpectSlopes(*loss_, batch, weights);
  EXPECT_NE(loss_->Evaluate(batch, weights)->loss, Evaluate(data).loss);
}

TEST_P(EveryLossTest, MaskedTokensNeverMatterEvenWhenNaN) {
  for (int seed = 0; seed < kNumSeeds; ++seed) {
    BatchData data = RandomBatch(static_cast<uint64_t>(seed));
    const LossResult plain = Evaluate(data);
    FillMasked(data, kNaN);
    const LossResult poisoned = Evaluate(data);
    EXPECT_EQ(plain.loss, poisoned.loss);
    EXPECT_EQ(plain.gradient, poisoned.gradient);
    ASSERT_EQ(plain.metrics.size(), poisoned.metrics.size());
    for (size_t i = 0; i < plain.metrics.size(); ++i) {
      EXPECT_EQ(plain.metrics[i].value, poisoned.metrics[i].value) << plain.metrics[i].name;
    }
    for (size_t token = 0; token < data.mask.size(); ++token) {
      if (data.mask[token] == 0) {
        EXPECT_EQ(plain.gradient[token], 0);
      }
    }
  }
}

TEST_P(EveryLossTest, SplittingIntoMicroBatchesChangesNothing) {
  if (loss_->scope() != LossScope::kToken && loss_->scope() != LossScope::kSequence) {
    GTEST_SKIP() << "compares tokens of a whole minibatch by definition";
  }
  for (int seed = 0; seed < kNumSeeds; ++seed) {
    const BatchData data = RandomBatch(static_cast<uint64_t>(seed));
    const MinibatchTotals totals = CountTotals(data.layout());
    const LossResult whole = Evaluate(data);
    double sum = 0;
    std::vector<double> gradient;
    MetricList metrics;
    for (size_t begin = 0; begin < data.groups.size(); begin += 5) {
      std::vector<size_t> part(std::min<size_t>(5, data.groups.size() - begin));
      std::iota(part.begin(), part.end(), begin);
      const LossResult result = Evaluate(Select(data, part), totals);
      sum += result.loss;
      gradient.insert(gradient.end(), result.gradient.begin(), result.gradient.end());
      MergeMetrics(result.metrics, metrics);
    }
    EXPECT_NEAR(whole.loss, sum, 1e-12 * std::max(1.0, std::abs(sum)));
    ASSERT_EQ(gradient.size(), whole.gradient.size());
    for (size_t token = 0; token < gradient.size(); ++token) {
      EXPECT_NEAR(whole.gradient[token], gradient[token], 1e-12);
    }
    for (const Metric& metric : whole.metrics) {
      const Metric* merged = FindMetric(metrics, metric.name);
      ASSERT_NE(merged, nullptr) << metric.name;
      EXPECT_NEAR(metric.value, merged->value, 1e-12) << metric.name;
    }
  }
}

// A loss of single tokens may be differentiated in any parts, with the rest of the log-probs
// unknown.
TEST_P(EveryLossTest, TokensThatStandForThemselvesCanBeDifferentiatedInParts) {
  for (int seed = 0; seed < kNumSeeds; ++seed) {
    const BatchData data = RandomBatch(static_cast<uint64_t>(seed));
    const ReductionWeights weights = Weigh(data, CountTotals(data.layout()));
    const PolicyTerm term = {.loss = *loss_, .weights = weights};
    ASSERT_EQ(term.IsOfSingleTokens(), loss_->scope() == LossScope::kToken);
    const LossResult whole = Evaluate(data);
    const PolicyTerm given = {.loss = *loss_, .weights = weights, .given = whole.gradient};
    ASSERT_TRUE(given.IsOfSingleTokens());
    const size_t num_tokens = data.mask.size();
    const size_t step = 1 + static_cast<size_t>(seed) % 7;
    for (size_t begin = 0; begin < num_tokens; begin += step) {
      const size_t end = std::min(begin + step, num_tokens);
      const std::vector<double> expected(whole.gradient.begin() + static_cast<ptrdiff_t>(begin),
                                         whole.gradient.begin() + static_cast<ptrdiff_t>(end));
      EXPECT_EQ(*given.Slopes(data.tokens(), begin, end), expected);
      if (!term.IsOfSingleTokens()) continue;
      std::vector<double> known(num_tokens, kNaN);
      std::copy(data.logprobs.begin() + static_cast<ptrdiff_t>(begin),
                data.logprobs.begin() + static_cast<ptrdiff_t>(end),
                known.begin() + static_cast<ptrdiff_t>(begin));
      TokenBatch batch = data.tokens();
      batch.logprobs = known;
      EXPECT_EQ(*term.Slopes(batch, begin, end), expected) << begin;
    }
  }
}

TEST_P(EveryLossTest, TheOrderOfSequencesChangesNothing) {
  for (int seed = 0; seed < kNumSeeds; ++seed) {
    const BatchData data = RandomBatch(static_cast<uint64_t>(seed));
    const std::vector<size_t> order =
        ShuffledOrder(data.groups.size(), static_cast<uint64_t>(seed) + 7);
    const LossResult plain = Evaluate(data);
    const LossResult shuffled = Evaluate(Select(data, order));
    EXPECT_NEAR(plain.loss, shuffled.loss, 1e-12 * std::max(1.0, std::abs(plain.loss)));
    const std::vector<size_t> tokens = TokensOf(data, order);
    for (size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_NEAR(plain.gradient[tokens[i]], shuffled.gradient[i], 1e-12);
    }
  }
}

TEST_P(EveryLossTest, AGroupOfEqualRewardsContributesNothing) {
  if (GetParam().name == "dro" || GetParam().name == "kl_cov") {
    GTEST_SKIP() << "has a penalty that does not look at advantages";
  }
  BatchData data = RandomBatch(3);
  // 0.1 is no binary fraction: a mean of three of them rounds.
  for (size_t sequence = 0; sequence < 3; ++sequence) data.rewards[sequence] = -0.1;
  const auto grpo = MakeAdvantageEstimator("grpo");
  ASSERT_TRUE(grpo.ok());
  const Result<Advantages> advantages = (*grpo)->Estimate(data.reward_batch());
  ASSERT_TRUE(advantages.ok());
  data.advantages = advantages->advantages;
  // Not even where the ratio of a token is infinite.
  for (const size_t sequence : {size_t{0}, size_t{2}}) {
    const size_t token = data.layout().begin(sequence);
    data.mask[token] = 1;
    data.rollout_logprobs[token] = -std::numeric_limits<double>::infinity();
    data.proximal_logprobs[token] = -std::numeric_limits<double>::infinity();
  }
  const LossResult result = Evaluate(data);
  EXPECT_TRUE(std::isfinite(result.loss)) << result.loss;
  for (size_t token = 0; token < data.layout().end(2); ++token) {
    EXPECT_EQ(result.gradient[token], 0) << token;
  }
}

TEST_P(EveryLossTest, ABatchWithoutPolicyTokensHasNoLoss) {
  BatchData data = RandomBatch(5);
  std::fill(data.mask.begin(), data.mask.end(), uint8_t{0});
  FillMasked(data, kNaN);
  const LossResult result = Evaluate(data);
  EXPECT_EQ(result.loss, 0);
  for (const double slope : result.gradient) EXPECT_EQ(slope, 0);
  for (const Metric& metric : result.metrics) EXPECT_EQ(metric.value, 0) << metric.name;
}

// A diverged network must not bring the process down: the trainer sees that the
// gradient is not finite and leaves the update out.
TEST_P(EveryLossTest, NaNsFromTheNetworkAreCarriedNotHidden) {
  BatchData data = RandomBatch(17, 8, 8);
  for (size_t token = 0; token < data.mask.size(); token += 2) data.logprobs[token] = kNaN;
  const LossResult result = Evaluate(data);
  const bool finite =
      std::isfinite(result.loss) && std::all_of(result.gradient.begin(), result.gradient.end(),
                                                [](double slope) { return std::isfinite(slope); });
  EXPECT_FALSE(finite);
}

TEST_P(EveryLossTest, AMissingArrayIsAnErrorThatNamesIt) {
  const BatchData data = RandomBatch(1);
  const ReductionWeights weights = Weigh(data, CountTotals(data.layout()));
  TokenBatch batch = data.tokens();
  batch.advantages = {};
  const Result<LossResult> result = loss_->Evaluate(batch, weights);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("advantages"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, EveryLossTest, testing::ValuesIn(Subjects()), [](const auto& test) {
  return test.param.name + "_" + std::to_string(test.index);
});

// The calls of a step, as losses.h shows them.
TEST(LossesTest, AStepGoesFromRewardsToTheGradientOfEachMicroBatch) {
  BatchData data = RandomBatch(13);
  const Result<CorrectionOptions> tis =
      CorrectionNamed("tis", {{"upper", "1.5"}, {"reject_token_k3", "0.5"}});
  const Result<Correction> correction =
      CorrectRollout(data.layout(), data.proximal_logprobs, data.rollout_logprobs, *tis);
  ASSERT_TRUE(correction.ok());
  MetricList metrics = correction->metrics;
  data.mask = correction->mask;
  const auto grpo = MakeAdvantageEstimator("grpo");
  const Result<Advantages> advantages = (*grpo)->Estimate(data.reward_batch());
  ASSERT_TRUE(advantages.ok());
  data.advantages = advantages->advantages;

  const auto loss = MakePolicyLoss("ppo", {{"clip_high", "0.28"}, {"dual_clip", "10"}});
  const ReductionOptions reduction = {.mode = (*loss)->paper_reduction()};
  const MinibatchTotals totals = CountTotals(data.layout());
  TokenBatch batch = data.tokens();
  batch.reference = RatioReference::kProximal;
  batch.importance_weights = correction->weights;
  const Result<LossResult> result =
      (*loss)->Evaluate(batch, *WeighTokens(data.layout(), totals, reduction));
  ASSERT_TRUE(result.ok()) << result.status().message();
  MergeMetrics(result->metrics, metrics);

  EXPECT_EQ(result->gradient.size(), data.mask.size());
  EXPECT_NE(result->loss, 0);
  for (const char* name : {"train/ess", "train/rejected", "train/kl", "train/clip_fraction"}) {
    EXPECT_NE(FindMetric(metrics, name), nullptr) << name;
  }
}

TEST(LossesTest, NamesAreSortedAndMakeLosses) {
  const std::span<const std::string_view> names = PolicyLossNames();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string_view name : names) EXPECT_TRUE(MakePolicyLoss(name).ok()) << name;
}

TEST(LossesTest, AnUnknownNameListsWhatThereIs) {
  const auto made = MakePolicyLoss("pppo");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("m2po"), std::string::npos);
}

TEST(LossesTest, AnUnknownSettingIsAnError) {
  const auto made = MakePolicyLoss("ppo", {{"clip", "0.2"}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message(),
            "unknown key ppo.clip (nearest: clip_low; ppo has clip_low, clip_high, "
            "dual_clip, max_log_ratio)");
}

TEST(LossesTest, TheRatioIsTakenAgainstTheChosenReference) {
  const BatchData data = RandomBatch(2);
  const auto loss = MakePolicyLoss("ppo");
  const Result<ReductionWeights> weights =
      WeighTokens(data.layout(), CountTotals(data.layout()), {});
  TokenBatch batch = data.tokens();
  const double by_rollout = (*loss)->Evaluate(batch, *weights)->loss;
  batch.reference = RatioReference::kProximal;
  const double by_proximal = (*loss)->Evaluate(batch, *weights)->loss;
  EXPECT_NE(by_rollout, by_proximal);
  batch.rollout_logprobs = {};
  EXPECT_EQ((*loss)->Evaluate(batch, *weights)->loss, by_proximal);
}

}  // namespace
}  // namespace pace
