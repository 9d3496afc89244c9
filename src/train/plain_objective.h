// Objectives written down plainly, one sequence at a time through torch's own
// functions, and the gradient of a trainer's last update to compare with. For tests.
#ifndef PACE_TRAIN_PLAIN_OBJECTIVE_H_
#define PACE_TRAIN_PLAIN_OBJECTIVE_H_

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "train/small_trainer.h"

namespace pace {

inline std::vector<TrainSequence> Batch() {
  std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 4);
  for (size_t i = 0; i < sequences.size(); ++i) {
    sequences[i].reward += 0.1 * static_cast<double>(i);
    sequences[i].baseline = 0.3 * static_cast<double>(sequences[i].group);
  }
  return sequences;
}

// Policy tokens of one sequence, through torch's own functions.
struct PlainTokens {
  at::Tensor logprobs_N;
  at::Tensor hidden_NH;
  at::Tensor rollout_N;
};

inline PlainTokens Score(const TrainingNetwork& network, const TrainSequence& sequence) {
  const auto num_rows = static_cast<int64_t>(sequence.tokens.size()) - 1;
  const at::Tensor hidden = network.Hidden(
      {.tokens = {sequence.tokens.begin(), sequence.tokens.end() - 1}, .lengths = {num_rows}});
  const at::Tensor logprobs = at::log_softmax(network.Logits(hidden), 1);
  std::vector<int64_t> rows;
  std::vector<int64_t> targets;
  std::vector<double> rollout;
  for (size_t t = 0; t < sequence.mask.size(); ++t) {
    if (sequence.mask[t] == 0) continue;
    const auto position = static_cast<size_t>(sequence.num_prompt_tokens) + t;
    rows.push_back(static_cast<int64_t>(position) - 1);
    targets.push_back(sequence.tokens[position]);
    rollout.push_back(sequence.rollout_logprobs[t]);
  }
  const at::Tensor rows_N = at::tensor(rows);
  return {
      .logprobs_N =
          logprobs.index_select(0, rows_N).gather(1, at::tensor(targets).unsqueeze(1)).squeeze(1),
      .hidden_NH = hidden.index_select(0, rows_N),
      .rollout_N = at::tensor(rollout, at::kDouble)};
}

inline double NumTokens(const std::vector<TrainSequence>& sequences) {
  double count = 0;
  for (const TrainSequence& sequence : sequences) {
    for (const uint8_t own : sequence.mask) count += own;
  }
  return count;
}

// d objective / d parameters, named as an optimizer's moments.
inline NamedTensors PlainGradient(const TrainingNetwork& network, const at::Tensor& objective) {
  FreeGradients(network.parameters());
  torch::autograd::backward({objective}, {});
  NamedTensors gradients;
  for (const auto& [name, parameter] : network.parameters()) {
    gradients.emplace(name + ".m", parameter.grad().clone());
  }
  return gradients;
}

// Of the last update, from moments before and after it.
inline NamedTensors LastGradient(const NamedTensors& before, const NamedTensors& after) {
  NamedTensors gradients;
  for (const auto& [name, tensor] : after) {
    if (!name.ends_with(".m")) continue;
    const auto found = before.find(name);
    const at::Tensor kept = found == before.end() ? at::zeros_like(tensor) : found->second * 0.9;
    gradients.emplace(name, (tensor - kept) / 0.1);
  }
  return gradients;
}

inline NamedTensors StepAndGetGradient(Trainer& trainer,
                                       const std::vector<TrainSequence>& sequences) {
  const NamedTensors before = Copy(trainer.State().tensors);
  const Result<MetricList> metrics = trainer.Step(PolicyVersion(0), sequences);
  EXPECT_TRUE(metrics.ok()) << metrics.status().message();
  return LastGradient(before, trainer.State().tensors);
}

// -mean over tokens of c_i log pi.
inline at::Tensor PlainReinforce(const TrainingNetwork& network,
                                 const std::vector<TrainSequence>& sequences,
                                 const std::vector<double>& coefficients) {
  at::Tensor objective = at::zeros({}, at::kDouble);
  for (size_t i = 0; i < sequences.size(); ++i) {
    objective = objective - Score(network, sequences[i]).logprobs_N.sum() * coefficients[i];
  }
  return objective / NumTokens(sequences);
}

inline TrainerOptions PlainReinforceOptions() {
  TrainerOptions options = Plain();
  options.loss.kind = LossKind::kReinforce;
  options.reduction = ReductionMode::kTokenMean;
  return options;
}

struct Work {
  int64_t num_threads = 1;
  int64_t token_budget = 100'000;
};
inline constexpr Work kWays[] = {{}, {.num_threads = 3}, {.num_threads = 1, .token_budget = 17}};

}  // namespace pace

#endif  // PACE_TRAIN_PLAIN_OBJECTIVE_H_
