// Value heads and greedy baselines in the trainer.
#include <gtest/gtest.h>

#include "train/plain_objective.h"

namespace pace {
namespace {

NamedTensors WithoutHead(NamedTensors gradients) {
  std::erase_if(gradients, [](const auto& entry) { return entry.first.starts_with("value_head"); });
  return gradients;
}

TrainerOptions GaeOptionsFor(const Work& work, bool trunk) {
  TrainerOptions options = Plain();
  options.advantage.kind = AdvantageKind::kGae;
  options.advantage.gae = {.gamma = 0.9, .lambda = 0.8};
  options.learning_rate = 0;
  options.value = {.learning_rate = 0.05, .coefficient = 0.7, .trains_trunk = trunk};
  options.num_threads = work.num_threads;
  options.token_budget = work.token_budget;
  return options;
}

// PPO on whitened advantages, plus the value loss, with weight and bias as given.
at::Tensor PlainActorCritic(const TrainingNetwork& network,
                            const std::vector<TrainSequence>& sequences, const at::Tensor& weight,
                            const at::Tensor& bias, bool trunk) {
  std::vector<at::Tensor> ratios, advantages, errors;
  for (const TrainSequence& sequence : sequences) {
    const PlainTokens tokens = Score(network, sequence);
    const at::Tensor hidden = trunk ? tokens.hidden_NH : tokens.hidden_NH.detach();
    const at::Tensor values = (hidden * weight).sum(1) + bias;
    const int64_t count = values.size(0);
    std::vector<double> own(static_cast<size_t>(count));
    double next = 0;
    double running = 0;
    for (int64_t t = count - 1; t >= 0; --t) {
      const double value = values[t].item<double>();
      const double reward = t == count - 1 ? sequence.reward : 0;
      running = reward + 0.9 * next - value + 0.9 * 0.8 * running;
      next = value;
      own[static_cast<size_t>(t)] = running;
    }
    const at::Tensor advantage = at::tensor(own, at::kDouble);
    advantages.push_back(advantage);
    errors.push_back(values - (advantage + values.detach()));
    ratios.push_back(at::exp(tokens.logprobs_N - tokens.rollout_N));
  }
  at::Tensor advantage = at::cat(advantages);
  advantage = (advantage - advantage.mean()) / at::sqrt(advantage.var() + 1e-8);
  const at::Tensor ratio = at::cat(ratios);
  const at::Tensor policy =
      -at::minimum(ratio * advantage, at::clamp(ratio, 0.8, 1.2) * advantage).mean();
  return policy + 0.7 * 0.5 * at::cat(errors).pow(2).mean();
}

TEST(ValueHeadTest, PolicyAndHeadHaveTheGradientsOfTheObjectiveWrittenPlainly) {
  const std::vector<TrainSequence> sequences = Batch();
  for (const bool trunk : {false, true}) {
    for (const Work& work : kWays) {
      const std::unique_ptr<TorchTrainer> trainer =
          MakeTrainer(GaeOptionsFor(work, trunk), InDouble());
      // The head leaves 0 in the first step; the policy stays.
      ASSERT_TRUE(trainer->Step(sequences).ok());
      const NamedTensors state = Copy(trainer->Tensors());
      const at::Tensor weight = state.at("value_head.weight").clone().set_requires_grad(true);
      const at::Tensor bias = state.at("value_head.bias").clone().set_requires_grad(true);
      EXPECT_GT(weight.abs().min().item<double>(), 0);
      const TrainingNetwork network = MakeNetwork(3, InDouble());
      NamedTensors expected =
          PlainGradient(network, PlainActorCritic(network, sequences, weight, bias, trunk));
      expected.emplace("value_head.weight.m", weight.grad());
      expected.emplace("value_head.bias.m", bias.grad());
      EXPECT_LT(RelativeDifference(expected, StepAndGetGradient(*trainer, sequences)), 1e-6)
          << trunk << " " << work.num_threads << " " << work.token_budget;
    }
  }
}

TEST(ValueHeadTest, ItsLossStaysOutOfTheTrunkUnlessAsked) {
  const std::vector<TrainSequence> sequences = Batch();
  const auto gradient = [&](double coefficient, bool trunk) {
    TrainerOptions options = GaeOptionsFor({}, trunk);
    options.value.coefficient = coefficient;
    const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options, InDouble());
    EXPECT_TRUE(trainer->Step(sequences).ok());
    return WithoutHead(StepAndGetGradient(*trainer, sequences));
  };
  // Adam's first step has the same size whatever the coefficient: equal heads.
  EXPECT_LT(RelativeDifference(gradient(0.7, false), gradient(70, false)), 1e-6);
  EXPECT_GT(RelativeDifference(gradient(0.7, true), gradient(70, true)), 0.1);
}

TEST(ValueHeadTest, ValuesLearnToExplainReturns) {
  TrainerOptions options = GaeOptionsFor({}, false);
  options.advantage.gae = {.lambda = 1};
  options.value.clip = 0;
  const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options);
  const std::vector<TrainSequence> sequences = Batch();
  const double first = MetricOf(*trainer->Step(sequences), "train/explained_variance");
  EXPECT_EQ(first, 0);
  double last = 0;
  for (int step = 1; step < 200; ++step) {
    last = MetricOf(*trainer->Step(sequences), "train/explained_variance");
  }
  EXPECT_GT(last, 0.5);
}

TEST(ValueHeadTest, LaterMinibatchesAreClippedAroundTheValuesBeforeTheStep) {
  TrainerOptions options = GaeOptionsFor({}, false);
  options.num_minibatches = 4;
  options.value.learning_rate = 0.5;
  options.value.clip = 1e-3;
  const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options);
  const Result<MetricList> metrics = trainer->Step(Batch());
  ASSERT_TRUE(metrics.ok());
  EXPECT_GT(MetricOf(*metrics, "train/value_clip_fraction"), 0);
  EXPECT_LT(MetricOf(*metrics, "train/value_clip_fraction"), 1);  // the first one is not
}

TEST(RemaxTest, AdvantagesAreAgainstTheGreedyResponse) {
  const std::vector<TrainSequence> sequences = Batch();
  std::vector<double> coefficients;
  for (const TrainSequence& one : sequences) coefficients.push_back(one.reward - *one.baseline);
  TrainerOptions options = PlainReinforceOptions();
  options.advantage.kind = AdvantageKind::kRemax;
  const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options, InDouble());
  const TrainingNetwork network = MakeNetwork(3, InDouble());
  const NamedTensors expected =
      PlainGradient(network, PlainReinforce(network, sequences, coefficients));
  EXPECT_LT(RelativeDifference(expected, StepAndGetGradient(*trainer, sequences)), 1e-6);
}

TEST(RemaxTest, WithoutAGreedyResponseItIsRefused) {
  TrainerOptions options = Plain();
  options.advantage.kind = AdvantageKind::kRemax;
  const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options);
  std::vector<TrainSequence> sequences = Batch();
  sequences[5].baseline.reset();
  const Result<MetricList> metrics = trainer->Step(sequences);
  ASSERT_FALSE(metrics.ok());
  EXPECT_NE(metrics.status().message().find("sequence 5: has no baseline"), std::string::npos);
}

TEST(TrainerStateTest, ATrainerThatWasRestoredGoesOnToTheBit) {
  TrainerOptions options = Plain();
  options.advantage.kind = AdvantageKind::kGae;
  options.num_minibatches = 2;
  options.kl.loss_coefficient = 0.1;
  options.kl.reward_coefficient = 0.2;
  options.kl.controller = {.target = 0.01, .horizon = 50};
  options.ess.emplace();
  const std::vector<TrainSequence> sequences = Batch();
  const std::unique_ptr<TorchTrainer> straight = MakeTrainer(options);
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(straight->Step(sequences).ok());
  }
  TrainerState state = straight->Copy().value();
  const std::unique_ptr<TorchTrainer> resumed = MakeTrainer(options);
  ASSERT_TRUE(resumed->Restore(state).ok());
  for (int step = 2; step < 4; ++step) {
    const Result<MetricList> one = straight->Step(sequences);
    const Result<MetricList> two = resumed->Step(sequences);
    ASSERT_TRUE(one.ok() && two.ok());
    for (const Metric& metric : *one) EXPECT_EQ(MetricOf(*two, metric.name), metric.value);
  }
  EXPECT_TRUE(Equal(straight->network().parameters(), resumed->network().parameters()));
  EXPECT_TRUE(Equal(straight->Tensors(), resumed->Tensors()));
  state.tensors.erase("value_head.weight");
  EXPECT_FALSE(resumed->Restore(state).ok());
}

}  // namespace
}  // namespace pace
