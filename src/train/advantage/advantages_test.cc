// What must hold for every estimator in the list, and so for a new one by itself.
#include "train/advantage/advantages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "train/test_batch.h"

namespace pace {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

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

// Every estimator with its defaults, and settings that take other paths.
std::vector<Subject> Subjects() {
  std::vector<Subject> subjects;
  for (const std::string_view name : AdvantageEstimatorNames()) {
    subjects.push_back({std::string(name)});
  }
  const std::vector<Subject> more = {
      {"gae", {{"gamma", "0.9"}, {"lambda", "0.8"}, {"standardize", "false"}}},
      {"gae", {{"length_factor", "1.5"}}},
      {"grpo", {{"standardize", "false"}}},
      {"pass_at_k", {{"standardize", "false"}}},
      {"reinforce_plus_plus", {{"cross_masked", "false"}}},
      {"reinforce_plus_plus", {{"gamma", "0.9"}}},
      {"rloo", {{"single", "zero"}}},
  };
  subjects.insert(subjects.end(), more.begin(), more.end());
  return subjects;
}

class EveryEstimatorTest : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    auto made = MakeAdvantageEstimator(GetParam().name, GetParam().settings);
    ASSERT_TRUE(made.ok()) << made.status().message();
    estimator_ = std::move(made).value();
  }
  Advantages Estimate(const BatchData& data) const {
    const Result<Advantages> result = estimator_->Estimate(data.reward_batch());
    EXPECT_TRUE(result.ok()) << result.status().message();
    return *result;
  }

  std::unique_ptr<AdvantageEstimator> estimator_;
};

TEST_P(EveryEstimatorTest, MaskedTokensNeverMatterEvenWhenNaN) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    BatchData data = RandomBatch(seed);
    const Advantages plain = Estimate(data);
    FillMasked(data, kNaN);
    const Advantages poisoned = Estimate(data);
    EXPECT_EQ(plain.advantages, poisoned.advantages);
    EXPECT_EQ(plain.returns, poisoned.returns);
    for (size_t token = 0; token < data.mask.size(); ++token) {
      if (data.mask[token] != 0) continue;
      EXPECT_EQ(plain.advantages[token], 0);
      EXPECT_EQ(plain.returns[token], 0);
    }
  }
}

TEST_P(EveryEstimatorTest, TheOrderOfSequencesChangesNothing) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    BatchData data = RandomBatch(seed);
    // pass_at_k must not find two best members.
    for (size_t i = 0; i < data.rewards.size(); ++i)
      data.rewards[i] += 1e-3 * static_cast<double>(i);
    const std::vector<size_t> order = ShuffledOrder(data.rewards.size(), seed);
    const Advantages plain = Estimate(data);
    const Advantages shuffled = Estimate(Select(data, order));
    const std::vector<size_t> tokens = TokensOf(data, order);
    for (size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_NEAR(plain.advantages[tokens[i]], shuffled.advantages[i], 1e-12);
    }
  }
}

TEST_P(EveryEstimatorTest, AGroupOfEqualRewardsGetsExactlyZeroWhereItPromises) {
  if (!estimator_->equal_rewards_give_zero()) GTEST_SKIP() << "standardises over the batch";
  for (const double reward : {-0.9, -0.95, 0.1, 1.0 / 3, 0.0}) {
    BatchData data = RandomBatch(2);
    for (size_t i = 0; i < 3; ++i) data.rewards[i] = reward;
    const Advantages result = Estimate(data);
    for (size_t token = 0; token < data.layout().end(2); ++token) {
      EXPECT_EQ(result.advantages[token], 0) << reward;
    }
  }
}

TEST_P(EveryEstimatorTest, ABatchWithoutPolicyTokensHasNoAdvantages) {
  BatchData data = RandomBatch(4);
  std::fill(data.mask.begin(), data.mask.end(), uint8_t{0});
  for (const double advantage : Estimate(data).advantages) EXPECT_EQ(advantage, 0);
}

TEST_P(EveryEstimatorTest, AWrongLengthIsAnErrorThatNamesTheArray) {
  BatchData data = RandomBatch(1);
  data.rewards.pop_back();
  const Result<Advantages> result = estimator_->Estimate(data.reward_batch());
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("rewards"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, EveryEstimatorTest, testing::ValuesIn(Subjects()),
                         [](const auto& test) {
                           return test.param.name + "_" + std::to_string(test.index);
                         });

TEST(AdvantagesTest, AnUnknownNameListsWhatThereIs) {
  const auto made = MakeAdvantageEstimator("grp");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("rloo"), std::string::npos);
}

TEST(AdvantagesTest, AMissingValueHeadIsNamed) {
  BatchData data = RandomBatch(1);
  data.values.clear();
  const auto result = (*MakeAdvantageEstimator("gae"))->Estimate(data.reward_batch());
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("values"), std::string::npos);
}

}  // namespace
}  // namespace pace
