#include "train/trainer.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random.h"
#include "model/tiny_configs.h"
#include "train/loss/losses.h"

namespace pace {
namespace {

constexpr int64_t kGroupSize = 3;

// Groups of responses of uneven lengths; a few tokens are not the policy's.
std::vector<TrainSequence> Sequences(const ModelConfig& config, int64_t num_groups) {
  const CounterRandom random(11, 0);
  std::vector<TrainSequence> sequences;
  for (int64_t i = 0; i < num_groups * kGroupSize; ++i) {
    const auto u = [&](uint64_t slot) { return random.Uniform(static_cast<uint64_t>(i), slot); };
    TrainSequence sequence;
    sequence.num_prompt_tokens = 1 + static_cast<int64_t>(4 * u(0));
    const auto length = static_cast<size_t>(2 + 9 * u(1));
    const auto total = static_cast<size_t>(sequence.num_prompt_tokens) + length;
    for (size_t t = 0; t < total; ++t) {
      sequence.tokens.push_back(
          static_cast<TokenId>(static_cast<double>(config.vocab_size) * u(2 + t)));
    }
    for (size_t t = 0; t < length; ++t) {
      sequence.mask.push_back(t > 0 && u(50 + t) < 0.2 ? 0 : 1);
      sequence.rollout_logprobs.push_back(static_cast<float>(-3.9 + 0.4 * u(90 + t)));
      sequence.versions.push_back(0);
    }
    sequence.group = i / kGroupSize;
    sequence.reward = u(130) < 0.5 ? 0 : 1;
    sequences.push_back(std::move(sequence));
  }
  sequences[0].reward = 1;
  sequences[1].reward = 0;
  return sequences;
}

std::unique_ptr<Trainer> MakeTrainer(const TrainerOptions& options,
                                     TrainingNetwork::Options network = {}) {
  at::set_num_threads(1);
  const ModelConfig config = TinyModel(Architecture::kQwen3);
  Result<TrainingNetwork> built =
      TrainingNetwork::Create(config, RandomWeights(config, 3, 0.2), network);
  EXPECT_TRUE(built.ok()) << built.status().message();
  Result<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(*built), options);
  EXPECT_TRUE(trainer.ok()) << trainer.status().message();
  return std::move(*trainer);
}

TrainingNetwork::Options InDouble() {
  TrainingNetwork::Options options;
  options.dtype = at::kDouble;
  return options;
}

TrainerOptions Plain() {
  TrainerOptions options;
  options.adamw.weight_decay = 0;
  options.max_grad_norm = 0;
  options.learning_rate = 1e-3;
  return options;
}

// After one update the first moments are the gradient, times a constant.
NamedTensors GradientOf(Trainer& trainer) {
  NamedTensors gradients;
  for (const auto& [name, tensor] : trainer.optimizer().State()) {
    if (name.ends_with(".m")) gradients.emplace(name, tensor.clone());
  }
  return gradients;
}

double RelativeDifference(const NamedTensors& left, const NamedTensors& right) {
  double difference = 0;
  double size = 0;
  for (const auto& [name, tensor] : left) {
    difference += (tensor - right.at(name)).pow(2).sum().item<double>();
    size += tensor.pow(2).sum().item<double>();
  }
  return std::sqrt(difference / size);
}

double MetricOf(const MetricList& metrics, const std::string& name) {
  const Metric* metric = FindMetric(metrics, name);
  EXPECT_NE(metric, nullptr) << name;
  return metric == nullptr ? std::numeric_limits<double>::quiet_NaN() : metric->value;
}

NamedTensors Copy(const NamedTensors& tensors) {
  NamedTensors copy;
  for (const auto& [name, tensor] : tensors) copy.emplace(name, tensor.detach().clone());
  return copy;
}

bool Equal(const NamedTensors& left, const NamedTensors& right) {
  for (const auto& [name, tensor] : left) {
    if (!at::equal(tensor, right.at(name))) return false;
  }
  return true;
}

TEST(TrainerTest, PackingAndAccumulationLeaveLossAndGradientUnchanged) {
  const std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 4);
  for (const std::string_view loss : PolicyLossNames()) {
    TrainerOptions options = Plain();
    options.loss = loss;
    NamedTensors expected;
    double expected_loss = 0;
    for (const int64_t budget : {100'000, 40, 17, 1}) {
      options.token_budget = budget;
      const std::unique_ptr<Trainer> trainer = MakeTrainer(options, InDouble());
      const Result<MetricList> metrics = trainer->Step(PolicyVersion(0), sequences);
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
    options.loss = loss;
    const std::unique_ptr<Trainer> one = MakeTrainer(options, InDouble());
    options.num_threads = 3;
    const std::unique_ptr<Trainer> three = MakeTrainer(options, InDouble());
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(one->Step(PolicyVersion(step), sequences).ok());
      ASSERT_TRUE(three->Step(PolicyVersion(step), sequences).ok());
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
    const std::unique_ptr<Trainer> whole = MakeTrainer(options, InDouble());
    options.token_budget = 1;
    const std::unique_ptr<Trainer> parts = MakeTrainer(options, InDouble());
    ASSERT_TRUE(whole->Step(PolicyVersion(0), sequences).ok());
    ASSERT_TRUE(parts->Step(PolicyVersion(0), sequences).ok());
    EXPECT_LT(RelativeDifference(GradientOf(*whole), GradientOf(*parts)), 1e-6) << NameOf(mode);
  }
}

TEST(TrainerTest, LayersComputedAgainGiveTheSameGradient) {
  const std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 3);
  TrainingNetwork::Options network;
  const std::unique_ptr<Trainer> kept = MakeTrainer(Plain(), network);
  network.recompute_layers = true;
  const std::unique_ptr<Trainer> again = MakeTrainer(Plain(), network);
  ASSERT_TRUE(kept->Step(PolicyVersion(0), sequences).ok());
  ASSERT_TRUE(again->Step(PolicyVersion(0), sequences).ok());
  EXPECT_TRUE(Equal(GradientOf(*kept), GradientOf(*again)));
}

TEST(TrainerTest, AGroupOfEqualRewardsContributesExactlyNothing) {
  std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 1);
  for (TrainSequence& sequence : sequences) sequence.reward = 1;
  const std::unique_ptr<Trainer> trainer = MakeTrainer(Plain());
  const NamedTensors before = Copy(trainer->network().parameters());
  const Result<MetricList> metrics = trainer->Step(PolicyVersion(0), sequences);
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(MetricOf(*metrics, "train/grad_norm"), 0);
  EXPECT_TRUE(Equal(before, trainer->network().parameters()));
}

TEST(TrainerTest, WhatStandsAtMaskedTokensNeverMattersEvenWhenItIsNan) {
  std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 3);
  const std::unique_ptr<Trainer> plain = MakeTrainer(Plain());
  ASSERT_TRUE(plain->Step(PolicyVersion(0), sequences).ok());
  for (TrainSequence& sequence : sequences) {
    for (size_t t = 0; t < sequence.mask.size(); ++t) {
      if (sequence.mask[t] == 0) {
        sequence.rollout_logprobs[t] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  }
  const std::unique_ptr<Trainer> poisoned = MakeTrainer(Plain());
  ASSERT_TRUE(poisoned->Step(PolicyVersion(0), sequences).ok());
  EXPECT_TRUE(Equal(plain->network().parameters(), poisoned->network().parameters()));
}

TEST(TrainerTest, ALearningRateOfZeroLeavesEveryBit) {
  TrainerOptions options = Plain();
  options.learning_rate = 0;
  options.adamw.weight_decay = 0.1;
  const std::unique_ptr<Trainer> trainer = MakeTrainer(options);
  const NamedTensors before = Copy(trainer->network().parameters());
  ASSERT_TRUE(trainer->Step(PolicyVersion(0), Sequences(trainer->network().config(), 3)).ok());
  EXPECT_TRUE(Equal(before, trainer->network().parameters()));
}

TEST(TrainerTest, SeveralMinibatchesAreAsManyUpdates) {
  TrainerOptions options = Plain();
  options.num_minibatches = 3;
  const std::unique_ptr<Trainer> trainer = MakeTrainer(options);
  ASSERT_TRUE(trainer->Step(PolicyVersion(0), Sequences(trainer->network().config(), 5)).ok());
  EXPECT_EQ(trainer->optimizer().num_updates(), 3);
}

TEST(TrainerTest, AnUpdateThatIsNotFiniteIsLeftOutAndCounted) {
  TrainerOptions options = Plain();
  options.loss = "reinforce";
  std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 2);
  sequences[0].reward = std::numeric_limits<double>::infinity();
  options.advantage = "rloo";
  const std::unique_ptr<Trainer> trainer = MakeTrainer(options);
  const NamedTensors before = Copy(trainer->network().parameters());
  const Result<MetricList> metrics = trainer->Step(PolicyVersion(0), sequences);
  if (metrics.ok()) {
    EXPECT_EQ(MetricOf(*metrics, "train/skipped_updates"), 1);
  }
  EXPECT_TRUE(Equal(before, trainer->network().parameters()));
}

TEST(TrainerTest, ImitationMakesResponsesLikelier) {
  TrainerOptions options = Plain();
  options.learning_rate = 5e-3;
  const std::unique_ptr<Trainer> trainer = MakeTrainer(options);
  const std::vector<TrainSequence> sequences = Sequences(trainer->network().config(), 2);
  const double before = trainer->MeanLogProb(sequences).value();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(trainer->Imitate(sequences).ok());
  EXPECT_GT(trainer->MeanLogProb(sequences).value(), before + 0.5);
}

TEST(TrainerTest, ComputingInBfloat16KeepsFloat32Parameters) {
  TrainingNetwork::Options network;
  network.compute_in_bf16 = true;
  const std::unique_ptr<Trainer> half = MakeTrainer(Plain(), network);
  const std::unique_ptr<Trainer> full = MakeTrainer(Plain());
  const std::vector<TrainSequence> sequences = Sequences(full->network().config(), 3);
  ASSERT_TRUE(half->Step(PolicyVersion(0), sequences).ok());
  ASSERT_TRUE(full->Step(PolicyVersion(0), sequences).ok());
  for (const auto& [name, parameter] : half->network().parameters()) {
    EXPECT_EQ(parameter.scalar_type(), at::kFloat) << name;
  }
  EXPECT_LT(RelativeDifference(GradientOf(*full), GradientOf(*half)), 0.05);
}

TEST(TrainerTest, BadSequencesAndOptionsAreRefusedInOneLine) {
  const std::unique_ptr<Trainer> trainer = MakeTrainer(Plain());
  std::vector<TrainSequence> sequences = Sequences(trainer->network().config(), 1);
  sequences[2].tokens[0] = 53;
  const Result<MetricList> step = trainer->Step(PolicyVersion(0), sequences);
  ASSERT_FALSE(step.ok());
  EXPECT_NE(step.status().message().find("sequence 2"), std::string::npos);
  EXPECT_FALSE(trainer->Step(PolicyVersion(0), {}).ok());
  TrainerOptions options;
  options.token_budget = 0;
  EXPECT_FALSE(options.Validate().ok());
}

}  // namespace
}  // namespace pace
