// VCPO in the trainer: the learning rate and the baseline.
#include <gtest/gtest.h>

#include <cmath>

#include "train/plain_objective.h"

namespace pace {
namespace {

// log of the sequence's weight, pi_theta over pi_rollout.
double LogWeight(const TrainingNetwork& network, const TrainSequence& sequence) {
  const PlainTokens tokens = Score(network, sequence);
  return (tokens.logprobs_N - tokens.rollout_N).sum().item<double>();
}

TEST(VcpoTest, TheRateOfAnUpdateFallsWithTheEffectiveSampleSize) {
  const std::vector<TrainSequence> sequences = Batch();
  const TrainingNetwork network = MakeNetwork(3, InDouble());
  double sum = 0;
  double squares = 0;
  for (const TrainSequence& sequence : sequences) {
    const double weight = std::exp(LogWeight(network, sequence));
    sum += weight;
    squares += weight * weight;
  }
  const double ratio = sum * sum / (squares * static_cast<double>(sequences.size()));
  EXPECT_LT(ratio, 0.9);
  TrainerOptions options = Plain();
  const std::unique_ptr<TorchTrainer> whole = MakeTrainer(options, InDouble());
  ASSERT_TRUE(whole->Step(sequences).ok());
  options.ess.emplace();
  options.token_budget = 30;
  const std::unique_ptr<TorchTrainer> scaled = MakeTrainer(options, InDouble());
  const Result<MetricList> metrics = scaled->Step(sequences);
  ASSERT_TRUE(metrics.ok());
  EXPECT_NEAR(MetricOf(*metrics, "train/sequence_ess"), ratio, 1e-9);
  EXPECT_NEAR(MetricOf(*metrics, "train/lr"), 1e-3 * std::sqrt(ratio), 1e-12);
  // And it is the rate that moved the weights.
  const NamedTensors& before = network.parameters();
  for (const auto& [name, parameter] : scaled->network().parameters()) {
    const at::Tensor full = whole->network().parameters().at(name) - before.at(name);
    const double difference =
        ((parameter - before.at(name)) - full * std::sqrt(ratio)).abs().max().item<double>();
    EXPECT_LT(difference, 1e-8) << name;
  }
}

std::vector<double> PlainOpob(const TrainingNetwork& network,
                              const std::vector<TrainSequence>& sequences) {
  std::vector<double> rewards(4), weights(4);
  std::vector<double> own;
  for (const TrainSequence& sequence : sequences) {
    double norm = 0;
    for (const auto& [name, gradient] :
         PlainGradient(network, Score(network, sequence).logprobs_N.sum())) {
      norm += gradient.pow(2).sum().item<double>();
    }
    own.push_back(norm * std::exp(2 * LogWeight(network, sequence)));
    const auto group = static_cast<size_t>(sequence.group);
    rewards[group] += own.back() * sequence.reward;
    weights[group] += own.back();
  }
  std::vector<double> coefficients;
  for (const TrainSequence& sequence : sequences) {
    const auto group = static_cast<size_t>(sequence.group);
    coefficients.push_back(sequence.reward - rewards[group] / weights[group]);
  }
  return coefficients;
}

TEST(VcpoTest, TheBaselineWeighsRewardsByGradientNorms) {
  const std::vector<TrainSequence> sequences = Batch();
  const TrainingNetwork network = MakeNetwork(3, InDouble());
  const std::vector<double> coefficients = PlainOpob(network, sequences);
  const NamedTensors expected =
      PlainGradient(network, PlainReinforce(network, sequences, coefficients));
  for (const Work& work : kWays) {
    TrainerOptions options = PlainReinforceOptions();
    options.opob.emplace();
    options.num_threads = work.num_threads;
    options.token_budget = work.token_budget;
    const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options, InDouble());
    EXPECT_LT(RelativeDifference(expected, StepAndGetGradient(*trainer, sequences)), 1e-6);
  }
}

}  // namespace
}  // namespace pace
