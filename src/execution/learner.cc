#include "execution/learner.h"

#include <ATen/Parallel.h>

#include <charconv>
#include <utility>

#include "execution/learner_options.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"

namespace pace {
namespace {

constexpr std::string_view kUpdatesKey = "num_updates";

TensorView ViewOf(const at::Tensor& tensor) {
  const std::span<const float> floats(tensor.data_ptr<float>(),
                                      static_cast<size_t>(tensor.numel()));
  return {.dtype = Dtype::kF32, .shape = tensor.sizes().vec(), .bytes = std::as_bytes(floats)};
}

Result<int64_t> NumUpdates(const SafetensorsFile& file) {
  int64_t number = -1;
  if (file.metadata().has_value()) {
    const auto found = file.metadata()->find(std::string(kUpdatesKey));
    if (found != file.metadata()->end()) {
      const std::string& text = found->second;
      std::from_chars(text.data(), text.data() + text.size(), number);
    }
  }
  if (number < 0) return DataLoss(file.path(), ": does not say num_updates");
  return number;
}

}  // namespace

Learner::Learner(const Settings& settings, const Policy& policy, std::unique_ptr<Trainer> trainer)
    : settings_(settings), policy_(policy), trainer_(std::move(trainer)) {}

Result<std::unique_ptr<Learner>> Learner::Create(const Settings& settings, const Policy& policy) {
  const Result<TrainerOptions> options = TrainerOptionsOf(settings);
  if (!options.ok()) return options.status();
  Result<TrainingNetwork> network =
      TrainingNetwork::Create(policy.config, policy.weights, NetworkOptionsOf(settings));
  if (!network.ok()) return network.status();
  Result<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(*network), *options);
  if (!trainer.ok()) return trainer.status();
  return std::unique_ptr<Learner>(new Learner(settings, policy, std::move(trainer).value()));
}

Result<MetricList> Learner::Train(PolicyVersion step, const std::vector<TrainSequence>& sequences) {
  // The trainer has threads of its own; LibTorch counts per calling thread.
  at::set_num_threads(1);
  return trainer_->Step(step, sequences);
}

WeightSet Learner::Snapshot() const {
  const WeightSet live = trainer_->network().Weights();
  // One block for all tensors.
  size_t total = 0;
  for (const auto& [name, view] : live.views()) total += view.bytes.size();
  auto bytes = std::make_shared<std::vector<std::byte>>(total);
  TensorViews views;
  size_t at = 0;
  for (const auto& [name, view] : live.views()) {
    const std::span<std::byte> place(bytes->data() + at, view.bytes.size());
    std::copy(view.bytes.begin(), view.bytes.end(), place.begin());
    views.emplace(name, TensorView{.dtype = view.dtype, .shape = view.shape, .bytes = place});
    at += view.bytes.size();
  }
  return WeightSet::Create(policy_.config, std::move(views), std::move(bytes)).value();
}

LearnerState Learner::Copy() const {
  LearnerState state;
  state.weights = Snapshot();
  for (const auto& [name, tensor] : trainer_->optimizer().State()) {
    state.moments.emplace(name, tensor.detach().to(at::kCPU, at::kFloat).contiguous().clone());
  }
  state.num_updates = trainer_->optimizer().num_updates();
  return state;
}

Status SaveLearnerState(const std::string& folder, const Policy& policy,
                        const LearnerState& state) {
  PACE_RETURN_IF_ERROR(SavePolicy(folder, policy, state.weights, Dtype::kF32));
  TensorViews views;
  for (const auto& [name, tensor] : state.moments) views.emplace(name, ViewOf(tensor));
  const SafetensorsMetadata metadata = {{std::string(kUpdatesKey), Concat(state.num_updates)}};
  return WriteSafetensors(folder + "/optimizer.safetensors", views, metadata);
}

Status Learner::Restore(const std::string& folder) {
  const Result<WeightSet> weights = WeightSet::Load(policy_.config, folder);
  if (!weights.ok()) return weights.status();
  const Result<SafetensorsFile> file = SafetensorsFile::Open(folder + "/optimizer.safetensors");
  if (!file.ok()) return file.status();
  const Result<int64_t> num_updates = NumUpdates(*file);
  if (!num_updates.ok()) return num_updates.status();
  NamedTensors state;
  for (const auto& [name, view] : file->tensors()) {
    at::Tensor tensor = at::empty(view.shape, at::kFloat);
    if (view.dtype != Dtype::kF32 || view.bytes.size() != 4 * static_cast<size_t>(tensor.numel())) {
      return DataLoss(file->path(), ": ", name, ": must be float32");
    }
    ReadFloats(view, {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())});
    state.emplace(name, tensor);
  }
  PACE_RETURN_IF_ERROR(trainer_->optimizer().Restore(state, *num_updates).At(file->path()));
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : trainer_->network().parameters()) {
    const std::vector<float> floats = weights->Floats(name);
    at::Tensor(parameter).detach().copy_(at::tensor(floats).view(parameter.sizes()));
  }
  return Status::Ok();
}

}  // namespace pace
