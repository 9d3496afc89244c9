#include "execution/engine_maker.h"

#include <algorithm>
#include <utility>

#include "execution/learner_options.h"
#include "model/decoder.h"

namespace pace {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

}  // namespace

Result<std::unique_ptr<EngineCore>> MakeEngine(const Settings& settings, const Policy& policy) {
  if (settings.generation.max_tokens >= policy.config.max_positions) {
    return InvalidArgument("generation.max_tokens = ", settings.generation.max_tokens,
                           ": the model has ", policy.config.max_positions,
                           " positions, for a prompt and its response");
  }
  const Dtype dtype = DecoderDtype(settings);
  const int64_t longest = std::min(settings.prompt.max_tokens + settings.generation.max_tokens,
                                   policy.config.max_positions);
  const int64_t block_bytes = BlockBytes(policy.config, dtype);
  const int64_t num_blocks = settings.engine.kv_mib * kMebibyte / block_bytes;
  const int64_t needed = (longest + kBlockTokens - 1) / kBlockTokens + 1;
  if (num_blocks < needed) {
    return InvalidArgument("engine.kv_mib = ", settings.engine.kv_mib, ": one response of ",
                           longest, " tokens with its prompt needs ",
                           (needed * block_bytes + kMebibyte - 1) / kMebibyte,
                           " MiB (raise it, or lower generation.max_tokens or prompt.max_tokens)");
  }
  const RolloutOptions options = RolloutOptionsOf(settings);
  PACE_RETURN_IF_ERROR(options.Validate().At("engine"));
  Result<std::unique_ptr<Decoder>> decoder = CreateCpuDecoder(
      policy.config,
      {.dtype = dtype, .num_blocks = num_blocks, .num_threads = settings.engine.threads});
  if (!decoder.ok()) return decoder.status();
  return std::make_unique<EngineCore>(std::move(decoder).value(), policy.tokenizer, options);
}

}  // namespace pace
