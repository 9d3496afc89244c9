#include "train/trainer.h"

#include <torch/csrc/api/include/torch/version.h>

#include <optional>
#include <utility>

#include "model/torch/recycling_allocator.h"
#include "train/leading_trainer.h"
#include "train/torch_trainer.h"

namespace pace {

namespace {

Result<std::unique_ptr<TorchTrainer>> MakeTrainer(const ModelConfig& config,
                                                  const WeightSet& weights,
                                                  const TrainerOptions& options,
                                                  Communicator* ranks) {
  TrainingNetwork::Options network_options;
  if (options.device == DeviceKind::kCuda) network_options.device = at::kCUDA;
  if (options.device == DeviceKind::kCpu) RecycleTensorMemory();
  network_options.compute_in_bf16 = options.compute_in_bf16;
  network_options.recompute_layers = options.recompute_layers;
  PACE_ASSIGN_OR_RETURN(TrainingNetwork network,
                        TrainingNetwork::Create(config, weights, network_options));
  std::optional<TrainingNetwork> initial;
  if (options.kl.active()) {
    PACE_ASSIGN_OR_RETURN(TrainingNetwork made,
                          TrainingNetwork::Create(config, weights, network_options));
    initial.emplace(std::move(made));
  }
  return TorchTrainer::Create(std::move(network), options, std::move(initial), ranks);
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::Create(const ModelConfig& config,
                                                 const WeightSet& weights,
                                                 const TrainerOptions& options,
                                                 Communicator* ranks) {
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<TorchTrainer> trainer,
                        MakeTrainer(config, weights, options, ranks));
  if (ranks == nullptr || ranks->size() == 1) return std::unique_ptr<Trainer>(std::move(trainer));
  return std::unique_ptr<Trainer>(std::make_unique<LeadingTrainer>(std::move(trainer), *ranks));
}

Status FollowTrainer(const ModelConfig& config, const WeightSet& weights,
                     const TrainerOptions& options, Communicator& ranks) {
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<TorchTrainer> trainer,
                        MakeTrainer(config, weights, options, &ranks));
  return Follow(*trainer, ranks);
}

const char* Trainer::TorchVersion() {
  return TORCH_VERSION;
}

}  // namespace pace
