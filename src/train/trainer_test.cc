#include "train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/loss/losses.h"
#include "train/small_trainer.h"

namespace pace {
namespace {

TEST(TrainerTest, PackingAndAccumulationLeaveLossAndGradientUnchanged) {
  const std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 4);
  for (const std::string_view loss : PolicyLossNames()) {
    TrainerOptions options = Plain();
    options.loss = *LossNamed(loss);
    NamedTensors expected;
    double expected_loss = 0;
    for (const int64_t budget : {100'000, 40, 17, 1}) {
      options.token_budget = budget;
      const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options, InDouble());
      const Result<MetricList> metrics = trainer->Step(sequences);
      ASSERT_TRUE(metrics.ok()) << loss << ": " << metrics.status().message();
      if (expected.empty()) {
        expected = GradientOf(*trainer);
        expected_loss = MetricOf(*metrics, "train/loss");
        EXPECT_GT(MetricOf(*metrics, "train/grad_norm"), 0) << loss;
      }
      EXPECT_LT(RelativeDifference(expected, GradientOf(*trainer)), 1e-6) << loss << " " << budget;
      EXPECT_NEAR(MetricOf(*metrics, "train/loss"), expected_loss,
                  1e-6 * std::max(1.0, std::abs(expected_loss)))
          << loss << " " << budget;
    }
  }
}

TEST(TrainerTest, ThreadsShareTheWorkWithoutChangingTheObjective) {
  const std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 4);
  for (const std::string_view loss : {"ppo", "m2po"}) {
    TrainerOptions options = Plain();
    options.loss = *LossNamed(loss);
    const std::unique_ptr<TorchTrainer> one = MakeTrainer(options, InDouble());
    options.num_threads = 3;
    const std::unique_ptr<TorchTrainer> three = MakeTrainer(options, InDouble());
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(one->Step(sequences).ok());
      ASSERT_TRUE(three->Step(sequences).ok());
      EXPECT_LT(RelativeDifference(GradientOf(*one), GradientOf(*three)), 1e-6) << loss;
    }
  }
}

TEST(TrainerTest, EveryReductionIsIndependentOfThePacking) {
  const std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 3);
  for (const ReductionMode mode :
       {ReductionMode::kTokenMean, ReductionMode::kTokenSum, ReductionMode::kSequenceMeanTokenSum,
        ReductionMode::kSequenceMeanTokenMean, ReductionMode::kSequenceMeanTokenSumNorm}) {
    TrainerOptions options = Plain();
    options.reduction = mode;
    options.horizon = 20;
    options.entropy_bonus = 0.01;
    const std::unique_ptr<TorchTrainer> whole = MakeTrainer(options, InDouble());
    options.token_budget = 1;
    const std::unique_ptr<TorchTrainer> parts = MakeTrainer(options, InDouble());
    ASSERT_TRUE(whole->Step(sequences).ok());
    ASSERT_TRUE(parts->Step(sequences).ok());
    EXPECT_LT(RelativeDifference(GradientOf(*whole), GradientOf(*parts)), 1e-6) << NameOf(mode);
  }
}

TEST(TrainerTest, LayersComputedAgainGiveTheSameGradient) {
  const std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 3);
  TrainingNetwork::Options network;
  const std::unique_ptr<TorchTrainer> kept = MakeTrainer(Plain(), network);
  network.recompute_layers = true;
  const std::unique_ptr<TorchTrainer> again = MakeTrainer(Plain(), network);
  ASSERT_TRUE(kept->Step(sequences).ok());
  ASSERT_TRUE(again->Step(sequences).ok());
  EXPECT_TRUE(Equal(GradientOf(*kept), GradientOf(*again)));
}

TEST(TrainerTest, AGroupOfEqualRewardsContributesExactlyNothing) {
  std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 1);
  for (TrainSequence& sequence : sequences) sequence.reward = 1;
  const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(Plain());
  const NamedTensors before = Copy(trainer->network().parameters());
  const Result<MetricList> metrics = trainer->Step(sequences);
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(MetricOf(*metrics, "train/grad_norm"), 0);
  EXPECT_TRUE(Equal(before, trainer->network().parameters()));
}

TEST(TrainerTest, WhatStandsAtMaskedTokensNeverMattersEvenWhenItIsNan) {
  std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 3);
  const std::unique_ptr<TorchTrainer> plain = MakeTrainer(Plain());
  ASSERT_TRUE(plain->Step(sequences).ok());
  for (TrainSequence& sequence : sequences) {
    for (size_t t = 0; t < sequence.mask.size(); ++t) {
      if (sequence.mask[t] == 0) {
        sequence.rollout_logprobs[t] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  }
  const std::unique_ptr<TorchTrainer> poisoned = MakeTrainer(Plain());
  ASSERT_TRUE(poisoned->Step(sequences).ok());
  EXPECT_TRUE(Equal(plain->network().parameters(), poisoned->network().parameters()));
}

TEST(TrainerTest, ALearningRateOfZeroLeavesEveryBit) {
  TrainerOptions options = Plain();
  options.learning_rate = 0;
  options.adamw.weight_decay = 0.1;
  const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options);
  const NamedTensors before = Copy(trainer->network().parameters());
  ASSERT_TRUE(trainer->Step(Sequences(trainer->network().config(), 3)).ok());
  EXPECT_TRUE(Equal(before, trainer->network().parameters()));
}

TEST(TrainerTest, SeveralMinibatchesAreAsManyUpdates) {
  TrainerOptions options = Plain();
  options.num_minibatches = 3;
  const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options);
  ASSERT_TRUE(trainer->Step(Sequences(trainer->network().config(), 5)).ok());
  EXPECT_EQ(trainer->optimizer().num_updates(), 3);
}

TEST(TrainerTest, SkippingGroupsOfEqualRewardsGivesTheSameGradient) {
  std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 4);
  for (TrainSequence& sequence : sequences) {
    if (sequence.group != sequences.front().group) sequence.reward = 1;
  }
  for (const std::string_view loss :
       {"cispo", "dapo", "decoupled_ppo", "dis", "gspo", "m2po", "ppo", "reinforce"}) {
    TrainerOptions options = Plain();
    options.loss = *LossNamed(loss);
    const std::unique_ptr<TorchTrainer> all = MakeTrainer(options, InDouble());
    options.skip_equal_rewards = true;
    ASSERT_TRUE(options.Validate().ok()) << loss;
    const std::unique_ptr<TorchTrainer> fewer = MakeTrainer(options, InDouble());
    ASSERT_TRUE(all->Step(sequences).ok());
    ASSERT_TRUE(fewer->Step(sequences).ok());
    EXPECT_LT(RelativeDifference(GradientOf(*all), GradientOf(*fewer)), 1e-6) << loss;
  }
}

TEST(TrainerTest, AnUpdateThatIsNotFiniteIsLeftOutAndCounted) {
  TrainerOptions options = Plain();
  options.loss.kind = LossKind::kReinforce;
  std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 2);
  sequences[0].reward = std::numeric_limits<double>::infinity();
  options.advantage.kind = AdvantageKind::kRloo;
  const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options);
  const NamedTensors before = Copy(trainer->network().parameters());
  const Result<MetricList> metrics = trainer->Step(sequences);
  ASSERT_TRUE(metrics.ok()) << metrics.status().message();
  EXPECT_EQ(MetricOf(*metrics, "train/skipped_updates"), 1);
  EXPECT_FALSE(std::isfinite(MetricOf(*metrics, "train/grad_norm")));
  EXPECT_TRUE(Equal(before, trainer->network().parameters()));
  EXPECT_EQ(trainer->optimizer().num_updates(), 0);
  // Nothing of it stays: the next update is as a first one.
  const std::vector<TrainSequence> sound = Sequences(trainer->network().config(), 2);
  const Result<MetricList> next = trainer->Step(sound);
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_EQ(MetricOf(*next, "train/skipped_updates"), 0);
  const std::unique_ptr<TorchTrainer> fresh = MakeTrainer(options);
  ASSERT_TRUE(fresh->Step(sound).ok());
  EXPECT_TRUE(Equal(fresh->network().parameters(), trainer->network().parameters()));
}

TEST(TrainerTest, ImitationMakesResponsesLikelier) {
  TrainerOptions options = Plain();
  options.learning_rate = 5e-3;
  const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(options);
  const std::vector<TrainSequence> sequences = Sequences(trainer->network().config(), 2);
  const double before = trainer->MeanLogProb(sequences).value();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(trainer->Imitate(sequences).ok());
  EXPECT_GT(trainer->MeanLogProb(sequences).value(), before + 0.5);
}

TEST(TrainerTest, ComputingInBfloat16KeepsFloat32Parameters) {
  TrainingNetwork::Options network;
  network.compute_in_bf16 = true;
  const std::unique_ptr<TorchTrainer> half = MakeTrainer(Plain(), network);
  const std::unique_ptr<TorchTrainer> full = MakeTrainer(Plain());
  const std::vector<TrainSequence> sequences = Sequences(full->network().config(), 3);
  ASSERT_TRUE(half->Step(sequences).ok());
  ASSERT_TRUE(full->Step(sequences).ok());
  for (const auto& [name, parameter] : half->network().parameters()) {
    EXPECT_EQ(parameter.scalar_type(), at::kFloat) << name;
  }
  EXPECT_LT(RelativeDifference(GradientOf(*full), GradientOf(*half)), 0.05);
}

TEST(TrainerTest, BadSequencesAndOptionsAreRefusedInOneLine) {
  const std::unique_ptr<TorchTrainer> trainer = MakeTrainer(Plain());
  std::vector<TrainSequence> sequences = Sequences(trainer->network().config(), 1);
  sequences[2].tokens[0] = 53;
  const Result<MetricList> step = trainer->Step(sequences);
  ASSERT_FALSE(step.ok());
  EXPECT_NE(step.status().message().find("sequence 2"), std::string::npos);
  EXPECT_FALSE(trainer->Step({}).ok());
  TrainerOptions options;
  options.token_budget = 0;
  EXPECT_FALSE(options.Validate().ok());
}

}  // namespace
}  // namespace pace
