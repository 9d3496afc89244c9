// A small network, trajectories for it and a trainer, for tests.
#ifndef PACE_TRAIN_SMALL_TRAINER_H_
#define PACE_TRAIN_SMALL_TRAINER_H_

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "model/tiny_configs.h"
#include "train/torch_trainer.h"

namespace pace {

inline constexpr int64_t kGroupSize = 3;

// Groups of responses of uneven lengths; a few tokens are not the policy's.
inline std::vector<TrainSequence> Sequences(const ModelConfig& config, int64_t num_groups) {
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

inline TrainingNetwork MakeNetwork(uint64_t seed, const TrainingNetwork::Options& options = {}) {
  const ModelConfig config = TinyModel(Architecture::kQwen3);
  Result<TrainingNetwork> built =
      TrainingNetwork::Create(config, RandomWeights(config, seed, 0.2), options);
  EXPECT_TRUE(built.ok()) << built.status().message();
  return std::move(*built);
}

// The initial policy is another one, so that there is a distance.
inline std::unique_ptr<TorchTrainer> MakeTrainer(const TrainerOptions& options,
                                                 TrainingNetwork::Options network = {},
                                                 uint64_t initial_seed = 4) {
  at::set_num_threads(1);
  std::optional<TrainingNetwork> initial;
  if (options.kl.active()) initial.emplace(MakeNetwork(initial_seed, network));
  Result<std::unique_ptr<TorchTrainer>> trainer =
      TorchTrainer::Create(MakeNetwork(3, network), options, std::move(initial));
  EXPECT_TRUE(trainer.ok()) << trainer.status().message();
  return std::move(*trainer);
}

inline TrainingNetwork::Options InDouble() {
  TrainingNetwork::Options options;
  options.dtype = at::kDouble;
  return options;
}

inline TrainerOptions Plain() {
  TrainerOptions options;
  options.adamw.weight_decay = 0;
  options.max_grad_norm = 0;
  options.learning_rate = 1e-3;
  return options;
}

// After one update the first moments are the gradient, times a constant.
inline NamedTensors GradientOf(TorchTrainer& trainer) {
  NamedTensors gradients;
  for (const auto& [name, tensor] : trainer.optimizer().State()) {
    if (name.ends_with(".m")) gradients.emplace(name, tensor.clone());
  }
  return gradients;
}

inline double RelativeDifference(const NamedTensors& left, const NamedTensors& right) {
  double difference = 0;
  double size = 0;
  for (const auto& [name, tensor] : left) {
    difference += (tensor - right.at(name)).pow(2).sum().item<double>();
    size += tensor.pow(2).sum().item<double>();
  }
  return std::sqrt(difference / size);
}

inline double MetricOf(const MetricList& metrics, const std::string& name) {
  const Metric* metric = FindMetric(metrics, name);
  EXPECT_NE(metric, nullptr) << name;
  return metric == nullptr ? std::numeric_limits<double>::quiet_NaN() : metric->value;
}

inline NamedTensors Copy(const NamedTensors& tensors) {
  NamedTensors copy;
  for (const auto& [name, tensor] : tensors) copy.emplace(name, tensor.detach().clone());
  return copy;
}

inline bool Equal(const NamedTensors& left, const NamedTensors& right) {
  for (const auto& [name, tensor] : left) {
    if (!at::equal(tensor, right.at(name))) return false;
  }
  return true;
}

}  // namespace pace

#endif  // PACE_TRAIN_SMALL_TRAINER_H_
