// For tests: a trainer on one of several ranks, and how far what it computed is from one rank's.
#ifndef PACE_TRAIN_TRAINER_ON_RANKS_H_
#define PACE_TRAIN_TRAINER_ON_RANKS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranks/communicator.h"
#include "train/leading_trainer.h"
#include "train/small_trainer.h"

namespace pace {

// What one trainer has after its calls.
struct Outcome {
  MetricList metrics = {};
  TrainerState state = {};
};

struct RankedRun {
  TrainerOptions options = Plain();
  TrainingNetwork::Options network = {};
  Architecture architecture = Architecture::kQwen3;
  int64_t num_groups = 4;
  int64_t num_steps = 1;
};

inline TrainingNetwork NetworkOf(const RankedRun& run, uint64_t seed) {
  const ModelConfig config = TinyModel(run.architecture);
  return TrainingNetwork::Create(config, RandomWeights(config, seed, 0.2), run.network).value();
}

inline std::unique_ptr<TorchTrainer> TrainerOf(const RankedRun& run, Communicator* ranks) {
  at::set_num_threads(1);
  std::optional<TrainingNetwork> initial;
  if (run.options.kl.active()) initial.emplace(NetworkOf(run, 4));
  Result<std::unique_ptr<TorchTrainer>> trainer =
      TorchTrainer::Create(NetworkOf(run, 3), run.options, std::move(initial), ranks);
  EXPECT_TRUE(trainer.ok()) << trainer.status().message();
  return std::move(*trainer);
}

inline std::vector<TrainSequence> BatchOf(const RankedRun& run) {
  std::vector<TrainSequence> sequences = Sequences(TinyModel(run.architecture), run.num_groups);
  for (TrainSequence& sequence : sequences) sequence.baseline = 0.25;
  // One best response in the first group: without it `pass_at_k` has no gradient.
  sequences[2].reward = 0.5;
  return sequences;
}

inline Outcome Drive(Trainer& trainer, const RankedRun& run) {
  Outcome outcome;
  for (int64_t step = 0; step < run.num_steps; ++step) {
    Result<MetricList> metrics = trainer.Step(BatchOf(run));
    EXPECT_TRUE(metrics.ok()) << metrics.status().message();
    if (metrics.ok()) outcome.metrics = std::move(*metrics);
  }
  Result<TrainerState> state = trainer.Copy();
  EXPECT_TRUE(state.ok()) << state.status().message();
  if (state.ok()) outcome.state = std::move(*state);
  return outcome;
}

// Every rank calls it; rank 0 has the outcome.
inline Outcome OnRank(const RankedRun& run, Communicator& ranks) {
  std::unique_ptr<TorchTrainer> own = TrainerOf(run, &ranks);
  if (ranks.rank() > 0) {
    const Status status = Follow(*own, ranks);
    EXPECT_TRUE(status.ok()) << status.message();
    return {};
  }
  LeadingTrainer trainer(std::move(own), ranks);
  return Drive(trainer, run);
}

inline Outcome OnOneRank(const RankedRun& run) {
  return Drive(*TrainerOf(run, nullptr), run);
}

// |a - b| / |a| over the tensors whose names end so.
inline double Distance(const TensorViews& left, const TensorViews& right, std::string_view suffix) {
  double difference = 0;
  double size = 0;
  for (const auto& [name, view] : left) {
    if (!name.ends_with(suffix)) continue;
    const TensorView& other = right.at(name);
    EXPECT_EQ(view.shape, other.shape) << name;
    const auto* a = reinterpret_cast<const float*>(view.bytes.data());
    const auto* b = reinterpret_cast<const float*>(other.bytes.data());
    for (size_t i = 0; i < view.bytes.size() / sizeof(float); ++i) {
      difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
      size += static_cast<double>(a[i]) * a[i];
    }
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

inline bool SameBits(const TensorViews& left, const TensorViews& right) {
  for (const auto& [name, view] : left) {
    const TensorView& other = right.at(name);
    if (!std::equal(view.bytes.begin(), view.bytes.end(), other.bytes.begin(), other.bytes.end())) {
      return false;
    }
  }
  return left.size() == right.size();
}

// Of the gradients: the first moments after one update are the gradient, times a constant.
inline double GradientDistance(const Outcome& one, const Outcome& several) {
  return Distance(one.state.tensors, several.state.tensors, ".m");
}

inline double GradientSize(const Outcome& outcome) {
  double size = 0;
  for (const auto& [name, view] : outcome.state.tensors) {
    if (!name.ends_with(".m")) continue;
    const auto* values = reinterpret_cast<const float*>(view.bytes.data());
    for (size_t i = 0; i < view.bytes.size() / sizeof(float); ++i) {
      size += static_cast<double>(values[i]) * values[i];
    }
  }
  return std::sqrt(size);
}

inline void ExpectSameMetrics(const Outcome& one, const Outcome& several, const std::string& what) {
  EXPECT_EQ(one.state.num_updates, several.state.num_updates) << what;
  ASSERT_EQ(one.metrics.size(), several.metrics.size()) << what;
  for (const Metric& metric : one.metrics) {
    const double value = MetricOf(several.metrics, metric.name);
    EXPECT_NEAR(value, metric.value, 1e-5 * std::max(1.0, std::abs(metric.value)))
        << what << " " << metric.name;
  }
}

inline constexpr std::array<ShardMode, 4> kModes = {ShardMode::kNone, ShardMode::kOptimizer,
                                                    ShardMode::kGradients, ShardMode::kFull};

}  // namespace pace

#endif  // PACE_TRAIN_TRAINER_ON_RANKS_H_
