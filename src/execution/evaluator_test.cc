#include "execution/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace pace {
namespace {

// The built-in model on short lists: it solves some problems and not others.
std::vector<BenchmarkScore> Evaluated(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"task.max_numbers=3", "task.held_out_problems=20",
                                  "generation.max_tokens=24", "engine.kv_mib=8",
                                  "evaluation.num_responses=3"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const Result<Settings> settings = LoadSettings("tiny", all);
  EXPECT_TRUE(settings.ok()) << settings.status().message();
  const Result<Policy> policy = LoadPolicy(settings->policy);
  EXPECT_TRUE(policy.ok()) << policy.status().message();
  Result<Evaluator> evaluator = Evaluator::Create(*settings, *policy, nullptr);
  EXPECT_TRUE(evaluator.ok()) << evaluator.status().message();
  Result<std::vector<BenchmarkScore>> scores = evaluator->Run(policy->weights);
  EXPECT_TRUE(scores.ok()) << scores.status().message();
  return std::move(scores).value();
}

TEST(EvaluatorTest, CountsCorrectResponsesOfEachProblem) {
  const BenchmarkScore score = Evaluated({}).front();
  ASSERT_EQ(score.num_correct.size(), 20u);
  const auto sum = std::accumulate(score.num_correct.begin(), score.num_correct.end(), int64_t{0});
  EXPECT_NEAR(score.mean, static_cast<double>(sum) / 60, 1e-12);
  EXPECT_GT(sum, 0);
  EXPECT_LT(sum, 60);
  const auto solved = std::count_if(score.num_correct.begin(), score.num_correct.end(),
                                    [](int64_t correct) { return correct > 0; });
  EXPECT_NEAR(score.pass, static_cast<double>(solved) / 20, 1e-12);
  EXPECT_FALSE(score.greedy.has_value());
}

TEST(EvaluatorTest, AGreedyResponseIsScoredByItself) {
  const BenchmarkScore plain = Evaluated({}).front();
  const BenchmarkScore both = Evaluated({"evaluation.greedy=true"}).front();
  const BenchmarkScore greedy =
      Evaluated({"evaluation.temperature=0", "evaluation.num_responses=1"}).front();
  ASSERT_TRUE(both.greedy.has_value());
  EXPECT_DOUBLE_EQ(*both.greedy, greedy.mean);
  EXPECT_EQ(both.num_correct, plain.num_correct);
  EXPECT_EQ(both.num_responses, 3);
  EXPECT_EQ(both.mean, plain.mean);
  EXPECT_EQ(both.majority, plain.majority);
  EXPECT_EQ(both.mean_length, plain.mean_length);
  EXPECT_EQ(both.truncated, plain.truncated);
  MetricsRow row;
  both.AppendTo(row);
  EXPECT_EQ(Find(row, "eval/" + both.name + "/greedy"), both.greedy);
}

TEST(EvaluatorTest, EvaluatesThePolicysWeightsAndNotRoundedOnes) {
  const std::vector<std::string> many = {"task.max_numbers=6", "task.held_out_problems=200"};
  std::vector<std::string> rounded = many;
  rounded.emplace_back("engine.quantization=fp8");
  EXPECT_EQ(Evaluated(rounded).front().num_correct, Evaluated(many).front().num_correct);
}

}  // namespace
}  // namespace pace
