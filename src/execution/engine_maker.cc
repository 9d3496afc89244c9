#include "execution/engine_maker.h"

#include <algorithm>
#include <utility>

#include "execution/learner_options.h"
#include "model/devices.h"

namespace pace {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

// Tokens of the longest response with its prompt.
int64_t LongestContext(const Settings& settings, const Policy& policy) {
  return std::min(settings.prompt.max_tokens + settings.generation.max_tokens,
                  policy.config.max_positions);
}

Quantization QuantizationOf(const Settings& settings) {
  const bool is_fp8 = settings.engine.quantization == EngineQuantization::kFp8;
  return is_fp8 ? Quantization::kFloat8 : Quantization::kNone;
}

int64_t BlocksFor(int64_t num_tokens) {
  return (num_tokens + kBlockTokens - 1) / kBlockTokens + 1;
}

}  // namespace

bool KeepsStates(const Settings& settings) {
  const RolloutOptions options = RolloutOptionsOf(settings);
  return options.score_prefixes && options.sync_mode == SyncMode::kReprefill;
}

Status CheckContext(const Settings& settings, const Policy& policy) {
  if (settings.generation.max_tokens >= policy.config.max_positions) {
    return InvalidArgument("generation.max_tokens = ", settings.generation.max_tokens,
                           ": the model has ", policy.config.max_positions,
                           " positions, for a prompt and its response");
  }
  const int64_t longest = LongestContext(settings, policy);
  const int64_t block_bytes = BlockBytes(policy.config, DecoderDtype(settings));
  const int64_t needed = BlocksFor(longest);
  if (settings.engine.kv_mib * kMebibyte / block_bytes < needed) {
    return InvalidArgument("engine.kv_mib = ", settings.engine.kv_mib, ": one response of ",
                           longest, " tokens with its prompt needs ",
                           (needed * block_bytes + kMebibyte - 1) / kMebibyte,
                           " MiB (raise it, or lower generation.max_tokens or prompt.max_tokens)");
  }
  return Status::Ok();
}

Result<std::unique_ptr<EngineCore>> MakeEngine(const Settings& settings, const Policy& policy,
                                               const EngineUse& use) {
  PACE_RETURN_IF_ERROR(CheckContext(settings, policy));
  const Dtype dtype = DecoderDtype(settings);
  const int64_t longest = LongestContext(settings, policy);
  const int64_t block_bytes = BlockBytes(policy.config, dtype);
  int64_t num_blocks = settings.engine.kv_mib * kMebibyte / block_bytes;
  const int64_t needed = BlocksFor(longest);
  if (use.max_context.has_value()) {
    if (*use.max_context < longest) {
      return InvalidArgument("gpu.memory_gib = ", settings.gpu.memory_gib, ": an engine has room ",
                             "for ", *use.max_context,
                             " tokens, one response with its prompt needs ", longest,
                             " (lower cluster.token_scale or generation.max_tokens)");
    }
    // Each response leaves half a block empty on average. Beside the thousands of
    // tokens that it stands for that is nothing, so it does not count.
    num_blocks =
        std::min(num_blocks, *use.max_context / kBlockTokens + settings.engine.slots / 2 + 1);
    num_blocks = std::max(num_blocks, needed);
  }
  RolloutOptions options = RolloutOptionsOf(settings);
  options.score_moment = use.score_moment;
  PACE_RETURN_IF_ERROR(options.Validate().At("engine"));
  const bool on_gpu = settings.policy.device == PolicyDevice::kCuda;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder,
                        CreateDecoder(on_gpu ? DeviceKind::kCuda : DeviceKind::kCpu, policy.config,
                                      {.dtype = dtype,
                                       .quantization = QuantizationOf(settings),
                                       .num_blocks = num_blocks,
                                       .num_threads = settings.engine.threads,
                                       .cache_states = use.score_moment == ScoreMoment::kEnd &&
                                                       KeepsStates(settings)}));
  if (use.wrap) decoder = use.wrap(std::move(decoder));
  return std::make_unique<EngineCore>(std::move(decoder), policy.tokenizer, options);
}

}  // namespace pace
