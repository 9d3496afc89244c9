#include "execution/gpu_plan.h"

#include <algorithm>
#include <cstdio>

#include "execution/engine_maker.h"
#include "execution/learner_options.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/cuda/train/training_memory.h"
#include "model/recompute_plan.h"

namespace pace {
namespace {

constexpr int64_t kGibibyte = int64_t{1} << 30;
constexpr int64_t kMebibyte = int64_t{1} << 20;

std::string Gibibytes(int64_t num_bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", static_cast<double>(num_bytes) / kGibibyte);
  return text;
}

int64_t SumOf(const std::vector<GpuPlan::Part>& parts) {
  int64_t sum = 0;
  for (const GpuPlan::Part& part : parts) sum += part.num_bytes;
  return sum;
}

}  // namespace

int64_t GpuPlan::TrainingBytes() const {
  return training_bound > 0 ? training_bound : SumOf(training);
}

int64_t GpuPlan::OtherBytes() const {
  return SumOf(rollouts) + SumOf(others);
}

Status GpuPlan::Check(int64_t memory_bytes) const {
  const bool bound_fits = training_bound == 0 || SumOf(training) <= training_bound;
  if (TotalBytes() <= memory_bytes && bound_fits) return Status::Ok();
  std::string text;
  std::vector<std::string> hints;
  for (const std::vector<Part>* parts : {&training, &rollouts, &others}) {
    for (const Part& part : *parts) {
      if (part.num_bytes == 0) continue;
      text += Concat(text.empty() ? "" : ", ", part.name, " ", Gibibytes(part.num_bytes));
      if (!part.hint.empty() && std::ranges::find(hints, part.hint) == hints.end()) {
        hints.push_back(part.hint);
      }
    }
  }
  std::string advice;
  for (const std::string& hint : hints) advice += Concat(advice.empty() ? "" : ", ", hint);
  if (!bound_fits) {
    return InvalidArgument("train.memory_gib = ", Gibibytes(training_bound), ": training needs ",
                           Gibibytes(SumOf(training)), " GiB (", text, "; see ", advice, ")");
  }
  return InvalidArgument("policy.device = cuda: the run needs ", Gibibytes(TotalBytes()),
                         " GiB, the GPU has ", Gibibytes(memory_bytes), " (",
                         num_ranks > 1 ? Concat(num_ranks, " trainer ranks share it; ") : "", text,
                         "; see ", advice, ")");
}

int64_t GpuPlan::TrainingLimit(int64_t memory_bytes) const {
  return training_bound > 0 ? training_bound : (memory_bytes - OtherBytes()) / num_ranks;
}

NetworkSize NetworkSizeOf(const ModelConfig& config) {
  ModelConfig shorter = config;
  shorter.num_layers = 0;
  const int64_t count = config.num_parameters();
  return {.num_parameters = count,
          .layer_parameters =
              (count - shorter.num_parameters()) / std::max<int64_t>(1, config.num_layers),
          .layer_elements = LayerElements(config),
          .num_layers = config.num_layers,
          .hidden = config.hidden_size,
          .vocab = config.vocab_size};
}

namespace {

// Bytes of an engine's weights.
int64_t EngineWeightBytes(const Settings& settings, const ModelConfig& config, int64_t width) {
  int64_t num_bytes = width * config.num_parameters();
  if (settings.engine.quantization == EngineQuantization::kNone || width != 2) return num_bytes;
  for (const Parameter& parameter : ParametersOf(config)) {
    if (!IsQuantized(parameter.name)) continue;
    // Experts are there in eight bits alone, other matrices in both forms.
    const bool is_expert = parameter.name.find(".experts.") != std::string::npos;
    num_bytes += (is_expert ? -1 : 1) * parameter.shape[0] * parameter.shape[1];
  }
  return num_bytes;
}

}  // namespace

GpuPlan PlanGpu(const Settings& settings, const ModelConfig& config, int64_t num_engines,
                const GpuShare& share) {
  const bool in_bf16 = settings.policy.compute == ComputeType::kBfloat16;
  const int64_t width = in_bf16 ? 2 : 4;
  const int64_t count = config.num_parameters();
  GpuPlan plan;
  plan.training_bound = static_cast<int64_t>(settings.train.memory_gib * kGibibyte);
  plan.num_ranks = share.ranks_on_gpu;
  const RankMemoryOptions rank = {.num_ranks = share.num_ranks,
                                  .shard = settings.train.shard,
                                  .in_bf16 = in_bf16,
                                  .recompute_layers = settings.train.recompute_layers,
                                  .tokens = settings.train.token_budget,
                                  .has_initial_policy = settings.train.kl.active()};
  for (MemoryPart& part : RankMemory(NetworkSizeOf(config), rank)) {
    plan.training.push_back({std::move(part.name), part.num_bytes, std::move(part.hint)});
  }
  // Without engines here, servers evaluate too.
  const bool evaluates = settings.run.evaluate_every > 0 && num_engines > 0;
  const int64_t decoders = num_engines + (evaluates ? 1 : 0);
  // A pass: rows of activations, and logits of the rows that ask for tokens.
  const int64_t rows = std::max(settings.engine.pass_tokens, settings.engine.slots);
  const int64_t pass = rows * (LayerElements(config) + config.vocab_size) * 4;
  const int64_t weights =
      num_engines * EngineWeightBytes(settings, config, width) + (evaluates ? width * count : 0);
  plan.rollouts = {{"engines' weights", weights, "engine.count"},
                   {"KV caches", decoders * settings.engine.kv_mib * kMebibyte, "engine.kv_mib"},
                   {"passes", decoders * pass, "engine.pass_tokens"}};
  if (KeepsStates(settings)) {
    // For each token of a cache, in as many bits.
    const int64_t kv_elements = 2 * config.num_layers * config.kv_size();
    plan.rollouts.push_back(
        {"states for prefix scores",
         num_engines * settings.engine.kv_mib * kMebibyte / kv_elements * config.hidden_size,
         "engine.kv_mib"});
  }
  plan.others = {{CudaContext().name, share.ranks_on_gpu * CudaContext().num_bytes}};
  return plan;
}

Status PrepareGpu(const Settings& settings, const ModelConfig& config, const GpuShare& share) {
  if (settings.policy.device != PolicyDevice::kCuda) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(const CudaDevice device, FindCudaDevice());
  const bool has_engines = share.has_rank_0 && !settings.engine.IsElsewhere();
  const GpuPlan plan = PlanGpu(settings, config, has_engines ? settings.engine.count : 0, share);
  PACE_RETURN_IF_ERROR(plan.Check(device.memory_bytes));
  return LimitTrainingMemory(plan.TrainingLimit(device.memory_bytes));
}

}  // namespace pace
