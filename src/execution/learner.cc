#include "execution/learner.h"

#include <ATen/Parallel.h>

#include <charconv>
#include <shared_mutex>
#include <utility>

#include "core/crc32c.h"
#include "execution/learner_options.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "model/cuda/capture_gate.h"

namespace pace {
namespace {

// Of optimizer.safetensors, whose metadata are texts.
constexpr const char* kUpdatesKey = "num_updates";
constexpr const char* kKlKey = "kl_coefficient";
constexpr const char* kInitialKey = "initial_crc32c";
// The first steps on a GPU may load kernels (capture_gate.h).
constexpr int64_t kLoadingSteps = 3;

TensorView ViewOf(const at::Tensor& tensor) {
  const std::span<const float> floats(tensor.data_ptr<float>(),
                                      static_cast<size_t>(tensor.numel()));
  return {.dtype = Dtype::kF32, .shape = tensor.sizes().vec(), .bytes = std::as_bytes(floats)};
}

template <typename Number>
std::optional<Number> MetadataNumber(const SafetensorsFile& file, const char* key) {
  if (!file.metadata().has_value()) return std::nullopt;
  const auto found = file.metadata()->find(key);
  if (found == file.metadata()->end()) return std::nullopt;
  const std::string& text = found->second;
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole ? std::optional<Number>(number) : std::nullopt;
}

uint32_t ChecksumOf(const WeightSet& weights) {
  std::string parts;
  for (const auto& [name, view] : weights.views()) {
    const auto* bytes = reinterpret_cast<const char*>(view.bytes.data());
    parts += Concat(name, " ", Crc32c({bytes, view.bytes.size()}), "\n");
  }
  return Crc32c(parts);
}

Result<TrainerState> ReadTrainerState(const SafetensorsFile& file) {
  TrainerState state;
  const std::optional<int64_t> num_updates = MetadataNumber<int64_t>(file, kUpdatesKey);
  if (!num_updates.has_value() || *num_updates < 0) {
    return DataLoss(file.path(), ": does not say ", kUpdatesKey);
  }
  state.num_updates = *num_updates;
  state.kl_coefficient = MetadataNumber<double>(file, kKlKey).value_or(0);
  for (const auto& [name, view] : file.tensors()) {
    at::Tensor tensor = at::empty(view.shape, at::kFloat);
    if (view.dtype != Dtype::kF32 || view.bytes.size() != 4 * static_cast<size_t>(tensor.numel())) {
      return DataLoss(file.path(), ": ", name, ": must be float32");
    }
    ReadFloats(view, {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())});
    state.tensors.emplace(name, tensor);
  }
  return state;
}

}  // namespace

Learner::Learner(const Settings& settings, const Policy& policy, std::unique_ptr<Trainer> trainer,
                 std::optional<uint32_t> initial_checksum)
    : settings_(settings),
      policy_(policy),
      trainer_(std::move(trainer)),
      initial_checksum_(initial_checksum) {}

Result<std::unique_ptr<Learner>> Learner::Create(const Settings& settings, const Policy& policy) {
  PACE_ASSIGN_OR_RETURN(const TrainerOptions options, TrainerOptionsOf(settings));
  PACE_ASSIGN_OR_RETURN(
      TrainingNetwork network,
      TrainingNetwork::Create(policy.config, policy.weights, NetworkOptionsOf(settings)));
  std::optional<TrainingNetwork> initial;
  std::optional<uint32_t> checksum;
  if (options.kl.active()) {
    PACE_ASSIGN_OR_RETURN(
        TrainingNetwork made,
        TrainingNetwork::Create(policy.config, policy.weights, NetworkOptionsOf(settings)));
    initial.emplace(std::move(made));
    checksum = ChecksumOf(policy.weights);
  }
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        Trainer::Create(std::move(network), options, std::move(initial)));
  return std::unique_ptr<Learner>(new Learner(settings, policy, std::move(trainer), checksum));
}

Result<MetricList> Learner::Train(PolicyVersion step, const std::vector<TrainSequence>& sequences) {
  // The trainer has threads of its own; LibTorch counts per calling thread.
  at::set_num_threads(1);
  if (settings_.policy.device == PolicyDevice::kCpu || num_steps_ >= kLoadingSteps) {
    return trainer_->Step(step, sequences);
  }
  ++num_steps_;
  const std::shared_lock gate(CaptureGate());
  return trainer_->Step(step, sequences);
}

WeightSet Learner::Snapshot() const {
  if (settings_.policy.device == PolicyDevice::kCuda) {
    return trainer_->network().DeviceWeights(DecoderDtype(settings_));
  }
  return HostSnapshot();
}

WeightSet Learner::HostSnapshot() const {
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
  state.weights = HostSnapshot();
  state.trainer = trainer_->State();
  for (auto& [name, tensor] : state.trainer.tensors) {
    tensor = tensor.detach().to(at::kCPU, at::kFloat).contiguous().clone();
  }
  state.initial_checksum = initial_checksum_;
  return state;
}

Status SaveLearnerState(const std::string& folder, const Policy& policy,
                        const LearnerState& state) {
  PACE_RETURN_IF_ERROR(SavePolicy(folder, policy, state.weights, Dtype::kF32));
  TensorViews views;
  for (const auto& [name, tensor] : state.trainer.tensors) views.emplace(name, ViewOf(tensor));
  SafetensorsMetadata metadata = {{kUpdatesKey, Concat(state.trainer.num_updates)}};
  if (state.trainer.kl_coefficient != 0) {
    metadata.emplace(kKlKey, Concat(state.trainer.kl_coefficient));
  }
  if (state.initial_checksum.has_value()) {
    metadata.emplace(kInitialKey, Concat(*state.initial_checksum));
  }
  return WriteSafetensors(folder + "/optimizer.safetensors", views, metadata);
}

Status Learner::Restore(const std::string& folder) {
  PACE_ASSIGN_OR_RETURN(const WeightSet weights, WeightSet::Load(policy_.config, folder));
  PACE_ASSIGN_OR_RETURN(const SafetensorsFile file,
                        SafetensorsFile::Open(folder + "/optimizer.safetensors"));
  const std::optional<uint32_t> began_at = MetadataNumber<uint32_t>(file, kInitialKey);
  if (initial_checksum_.has_value() && began_at.has_value() && began_at != initial_checksum_) {
    return InvalidArgument("policy.model = ", settings_.policy.model,
                           ": is not the model that the run began with, and its KL penalty is the "
                           "distance from that one (put it back)");
  }
  PACE_ASSIGN_OR_RETURN(const TrainerState state, ReadTrainerState(file));
  PACE_RETURN_IF_ERROR(trainer_->Restore(state).At(file.path()));
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : trainer_->network().parameters()) {
    const std::vector<float> floats = weights.Floats(name);
    at::Tensor(parameter).detach().copy_(at::tensor(floats).view(parameter.sizes()));
  }
  return Status::Ok();
}

}  // namespace pace
