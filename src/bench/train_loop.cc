#include "bench/train_loop.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include "bench/machine.h"
#include "core/clock.h"
#include "core/json_writer.h"
#include "core/random.h"
#include "model/torch/training_network.h"
#include "train/policy_scores.h"

namespace pace {
namespace {

constexpr uint64_t kSeed = 20261115;
constexpr double kDrift = 0.05;  // of log-probs since the rollout
enum Stream : uint32_t { kPromptLength, kResponseLength, kPromptToken, kResponseToken, kReward };
constexpr int64_t kGemmSize = 2048;
constexpr Seconds kGemmTime(0.5);

Result<double> ValueOf(const MetricList& metrics, const std::string& name) {
  const Metric* metric = FindMetric(metrics, name);
  if (metric == nullptr) return NotFound("the trainer reports no ", name);
  return metric->value;
}

void WriteSequence(JsonWriter& json, const TrainSequence& sequence) {
  json.BeginObject();
  PutArray(json, "tokens", sequence.tokens);
  json.Put("num_prompt_tokens", sequence.num_prompt_tokens);
  PutArray(json, "rollout_logprobs",
           std::vector<double>(sequence.rollout_logprobs.begin(), sequence.rollout_logprobs.end()));
  json.Put("group", sequence.group);
  json.Put("reward", sequence.reward);
  json.EndObject();
}

}  // namespace

std::string TrainLoadRequest(const std::string& folder, const std::vector<TrainSequence>& sequences,
                             const TrainerOptions& options, int64_t token_budget) {
  std::string request;
  JsonWriter json(request);
  json.BeginObject();
  json.Put("load", folder);
  json.Put("threads", options.num_threads);
  json.Put("token_budget", token_budget);
  json.Put("learning_rate", options.learning_rate);
  PutArray(json, "betas", std::array{options.adamw.beta1, options.adamw.beta2});
  json.Put("epsilon", options.adamw.epsilon);
  json.Put("weight_decay", options.adamw.weight_decay);
  json.Put("max_grad_norm", options.max_grad_norm);
  json.Key("sequences");
  json.BeginArray();
  for (const TrainSequence& sequence : sequences) WriteSequence(json, sequence);
  json.EndArray();
  json.EndObject();
  return request;
}

std::vector<TrainSequence> MakeTrainBatch(const ModelConfig& config,
                                          const TrainBatchOptions& options) {
  const auto draw = [](Stream stream, int64_t a, int64_t b = 0) {
    return CounterRandom(kSeed, stream).Uniform(static_cast<uint64_t>(a), static_cast<uint64_t>(b));
  };
  const auto token = [&](double u) {
    return static_cast<TokenId>(u * static_cast<double>(config.vocab_size));
  };
  const auto spread = static_cast<double>(options.max_prompt_tokens - options.min_prompt_tokens);
  std::vector<TrainSequence> sequences;
  for (int64_t i = 0; i < options.num_groups * options.group_size; ++i) {
    TrainSequence& sequence = sequences.emplace_back();
    sequence.group = i / options.group_size;
    sequence.num_prompt_tokens = options.min_prompt_tokens +
                                 static_cast<int64_t>(spread * draw(kPromptLength, sequence.group));
    const double normal = CounterRandom(kSeed, kResponseLength).Normal(static_cast<uint64_t>(i));
    const double length = options.median_response_tokens * std::exp(options.log_deviation * normal);
    const auto num_tokens = static_cast<int64_t>(
        std::clamp(length, 1.0, static_cast<double>(options.max_response_tokens)));
    for (int64_t t = 0; t < sequence.num_prompt_tokens; ++t) {
      sequence.tokens.push_back(token(draw(kPromptToken, sequence.group, t)));
    }
    for (int64_t t = 0; t < num_tokens; ++t) {
      sequence.tokens.push_back(token(draw(kResponseToken, i, t)));
    }
    sequence.mask.assign(static_cast<size_t>(num_tokens), 1);
    sequence.rollout_logprobs.assign(static_cast<size_t>(num_tokens), 0);
    sequence.versions.assign(static_cast<size_t>(num_tokens), 0);
    const int64_t member = i % options.group_size;
    sequence.reward = member < 2 ? static_cast<double>(member) : std::round(draw(kReward, i));
  }
  return sequences;
}

int64_t CountTokens(const std::vector<TrainSequence>& sequences) {
  int64_t count = 0;
  for (const TrainSequence& sequence : sequences) {
    count += static_cast<int64_t>(sequence.tokens.size());
  }
  return count;
}

TrainerOptions BenchTrainerOptions(int64_t num_threads, int64_t token_budget) {
  TrainerOptions options;
  options.reduction = ReductionMode::kTokenMean;
  options.num_threads = num_threads;
  options.token_budget = token_budget / num_threads;
  return options;
}

Result<std::unique_ptr<TrainLoop>> TrainLoop::Create(const ModelConfig& config,
                                                     const WeightSet& weights, Dtype dtype,
                                                     const TrainerOptions& options,
                                                     Communicator* ranks) {
  TrainerOptions with_dtype = options;
  with_dtype.compute_in_bf16 = dtype == Dtype::kBF16;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        Trainer::Create(config, weights, with_dtype, ranks));
  return std::unique_ptr<TrainLoop>(new TrainLoop(std::move(trainer)));
}

Result<TrainStep> TrainLoop::Step(const std::vector<TrainSequence>& sequences,
                                  bool measure_memory) {
  // The trainer has threads of its own.
  at::set_num_threads(1);
  TrainStep step;
  std::optional<PeakMemory> peak;
  if (measure_memory) peak.emplace();
  const WallClock clock;
  const Result<MetricList> metrics = trainer_->Step(sequences);
  step.seconds = clock.Now().count();
  if (peak.has_value()) step.peak_bytes = peak->Bytes();
  if (!metrics.ok()) return metrics.status();
  PACE_ASSIGN_OR_RETURN(const double loss, ValueOf(*metrics, "train/loss"));
  PACE_ASSIGN_OR_RETURN(const double norm, ValueOf(*metrics, "train/grad_norm"));
  step.loss = loss;
  step.grad_norm = norm;
  return step;
}

Status RecordLogProbs(const ModelConfig& config, const WeightSet& weights,
                      std::vector<TrainSequence>& sequences) {
  PACE_ASSIGN_OR_RETURN(const TrainingNetwork network,
                        TrainingNetwork::Create(config, weights, {}));
  at::set_num_threads(1);
  try {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < sequences.size(); ++i) {
      TrainSequence& sequence = sequences[i];
      const Minibatch alone({&sequence});
      const PolicyScores scored = ScorePolicyTokens(network, alone, 1.0);
      std::vector<double> logprobs(sequence.num_response_tokens());
      scored.Spread(scored.logprobs_N, logprobs);
      for (size_t t = 0; t < logprobs.size(); ++t) {
        const double drift = kDrift * CounterRandom(kSeed, 100).Normal(i, t);
        sequence.rollout_logprobs[t] = static_cast<float>(logprobs[t] + drift);
      }
    }
  } catch (const std::exception& error) {
    return Unavailable("scoring: ", error.what());
  }
  return Status::Ok();
}

double GemmGigaflops(Dtype dtype, int64_t num_threads) {
  const at::NoGradGuard no_grad;
  at::set_num_threads(static_cast<int>(num_threads));
  const at::ScalarType type = dtype == Dtype::kBF16 ? at::kBFloat16 : at::kFloat;
  const at::Tensor a = at::randn({kGemmSize, kGemmSize}).to(type);
  const at::Tensor b = at::randn({kGemmSize, kGemmSize}).to(type);
  double best = std::numeric_limits<double>::infinity();
  for (const WallClock all; all.Now() < kGemmTime;) {
    const WallClock one;
    at::mm(a, b);
    best = std::min(best, one.Now().count());
  }
  at::set_num_threads(1);
  return 2e-9 * kGemmSize * kGemmSize * kGemmSize / best;
}

}  // namespace pace
