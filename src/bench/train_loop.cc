#include "bench/train_loop.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "bench/peak_memory.h"
#include "core/clock.h"
#include "core/random.h"
#include "model/torch/training_network.h"
#include "train/policy_scores.h"

namespace pace {
namespace {

constexpr uint64_t kSeed = 20261115;
constexpr double kDrift = 0.05;  // of log-probs since the rollout
constexpr int64_t kGemmSize = 2048;
constexpr Seconds kGemmTime(0.5);

Result<double> ValueOf(const MetricList& metrics, const std::string& name) {
  const Metric* metric = FindMetric(metrics, name);
  if (metric == nullptr) return NotFound("the trainer reports no ", name);
  return metric->value;
}

}  // namespace

TrainerOptions BenchTrainerOptions(int64_t num_threads, int64_t token_budget) {
  TrainerOptions options;
  options.reduction = ReductionMode::kTokenMean;
  options.num_threads = num_threads;
  options.token_budget = token_budget / num_threads;
  return options;
}

Result<std::unique_ptr<TrainLoop>> TrainLoop::Create(const ModelConfig& config,
                                                     const WeightSet& weights, Dtype dtype,
                                                     const TrainerOptions& options) {
  TrainingNetwork::Options network_options;
  network_options.compute_in_bf16 = dtype == Dtype::kBF16;
  PACE_ASSIGN_OR_RETURN(TrainingNetwork network,
                        TrainingNetwork::Create(config, weights, network_options));
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        Trainer::Create(std::move(network), options));
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
  const Result<MetricList> metrics = trainer_->Step(version_, sequences);
  step.seconds = clock.Now().count();
  if (peak.has_value()) step.peak_bytes = peak->Bytes();
  if (!metrics.ok()) return metrics.status();
  version_ = version_.Next();
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
