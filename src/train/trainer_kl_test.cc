// KL penalties against the initial policy in the trainer.
#include <gtest/gtest.h>

#include "train/plain_objective.h"

namespace pace {
namespace {

// Values of the estimators and what they are differentiated as.
at::Tensor PlainKl(const std::string& name, const at::Tensor& x) {
  if (name.ends_with('+')) return x * x / 2;
  if (name == "k1") return x;
  if (name == "k2") return x * x / 2;
  if (name == "k3") return at::clamp(at::exp(-x) - 1 + x, -10, 10);
  return x.abs();
}

TEST(InitialKlTest, ThePenaltyInTheLossHasTheGradientWrittenPlainly) {
  std::vector<TrainSequence> sequences = Batch();
  // Equal rewards: nothing but the penalty.
  for (TrainSequence& sequence : sequences) sequence.reward = 1;
  for (const std::string name : {"k1", "k2", "k3", "abs", "k1+", "k3+", "abs+"}) {
    for (const std::string loss : {"ppo", "m2po"}) {  // m2po sees its minibatch at once
      TrainerOptions options = Plain();
      options.loss = *LossNamed(loss);
      options.token_budget = 40;
      options.kl.loss_coefficient = 0.3;
      options.kl.loss_estimator = *KlPenaltyFromName(name);
      const std::unique_ptr<Trainer> trainer = MakeTrainer(options, InDouble());
      const TrainingNetwork network = MakeNetwork(3, InDouble());
      const TrainingNetwork initial = MakeNetwork(4, InDouble());
      at::Tensor objective = at::zeros({}, at::kDouble);
      for (const TrainSequence& sequence : sequences) {
        const at::Tensor x =
            Score(network, sequence).logprobs_N - Score(initial, sequence).logprobs_N.detach();
        objective = objective + 0.3 * PlainKl(name, x).sum() / NumTokens(sequences);
      }
      const NamedTensors expected = PlainGradient(network, objective);
      EXPECT_LT(RelativeDifference(expected, StepAndGetGradient(*trainer, sequences)), 1e-6)
          << name << " " << loss;
    }
  }
}

TEST(InitialKlTest, ThereIsNoDistanceBeforeTheFirstUpdateAndSomeAfterIt) {
  TrainerOptions options = Plain();
  options.kl.loss_coefficient = 0.1;
  options.kl.reward_coefficient = 0.1;
  const std::unique_ptr<Trainer> trainer = MakeTrainer(options, {}, /*initial_seed=*/3);
  const std::vector<TrainSequence> sequences = Batch();
  EXPECT_EQ(MetricOf(*trainer->Step(PolicyVersion(0), sequences), "train/kl_initial"), 0);
  EXPECT_GT(MetricOf(*trainer->Step(PolicyVersion(1), sequences), "train/kl_initial"), 0);
}

// Sum over a response of log pi_rollout - log pi_initial.
double RolloutDistance(const TrainingNetwork& initial, const TrainSequence& sequence) {
  const PlainTokens tokens = Score(initial, sequence);
  return (tokens.rollout_N - tokens.logprobs_N).sum().item<double>();
}

TEST(InitialKlTest, ThePenaltyInTheRewardIsPaidBeforeAdvantages) {
  const std::vector<TrainSequence> sequences = Batch();
  const TrainingNetwork initial = MakeNetwork(4, InDouble());
  std::vector<double> rewards;
  for (const TrainSequence& one : sequences) {
    rewards.push_back(one.reward - 0.2 * RolloutDistance(initial, one));
  }
  std::vector<double> coefficients;  // against the mean of the other two
  for (size_t i = 0; i < rewards.size(); ++i) {
    const size_t first = i / 3 * 3;
    const double sum = rewards[first] + rewards[first + 1] + rewards[first + 2];
    coefficients.push_back(rewards[i] - (sum - rewards[i]) / 2);
  }
  TrainerOptions options = PlainReinforceOptions();
  options.advantage.kind = AdvantageKind::kRloo;
  options.kl.reward_coefficient = 0.2;
  const std::unique_ptr<Trainer> trainer = MakeTrainer(options, InDouble());
  const TrainingNetwork network = MakeNetwork(3, InDouble());
  const NamedTensors expected =
      PlainGradient(network, PlainReinforce(network, sequences, coefficients));
  EXPECT_LT(RelativeDifference(expected, StepAndGetGradient(*trainer, sequences)), 1e-6);
}

TEST(InitialKlTest, ATargetSteersTheCoefficientOfTheNextStep) {
  for (const double target : {1e-6, 1e6}) {
    TrainerOptions options = Plain();
    options.kl.reward_coefficient = 0.2;
    options.kl.reward_estimator = *KlPenaltyFromName("k2");
    options.kl.controller = {.target = target, .horizon = 24};
    const std::unique_ptr<Trainer> trainer = MakeTrainer(options);
    const std::vector<TrainSequence> sequences = Batch();  // 12 of them
    const auto coefficient = [&] {
      return MetricOf(*trainer->Step(PolicyVersion(0), sequences), "train/kl_reward_coef");
    };
    EXPECT_EQ(coefficient(), 0.2);
    EXPECT_NEAR(coefficient(), 0.2 * (target < 1 ? 1.1 : 0.9), 1e-12);
  }
}

TEST(InitialKlTest, AStepThatFailsLeavesTheCoefficient) {
  TrainerOptions options = Plain();
  options.kl.reward_coefficient = 0.1;
  options.kl.controller = {.target = 1e-6, .horizon = 24};
  options.advantage.kind = AdvantageKind::kRemax;
  const std::unique_ptr<Trainer> trainer = MakeTrainer(options);
  const double before = trainer->State().kl_coefficient;
  std::vector<TrainSequence> sequences = Batch();
  sequences.back().baseline.reset();  // which remax needs
  EXPECT_FALSE(trainer->Step(PolicyVersion(0), sequences).ok());
  EXPECT_EQ(trainer->State().kl_coefficient, before);
}

TEST(InitialKlTest, WithoutAnInitialPolicyItIsRefused) {
  TrainerOptions options = Plain();
  options.kl.loss_coefficient = 0.1;
  EXPECT_FALSE(Trainer::Create(MakeNetwork(3), options).ok());
}

}  // namespace
}  // namespace pace
