#include "bench/decode_loop.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "core/random.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/weight_set.h"

namespace pace {
namespace {

constexpr uint64_t kSeed = 20261115;
constexpr double kDeviation = 0.02;
// Rows of a prefill's pass.
constexpr int64_t kPassTokens = 4096;

Result<std::shared_ptr<const DecoderWeights>> RandomPrepared(const Decoder& decoder,
                                                             DeviceKind device) {
  if (device == DeviceKind::kCuda) return RandomCudaWeights(decoder, kSeed, kDeviation);
  return decoder.Prepare(RandomWeights(decoder.config(), kSeed, kDeviation));
}

}  // namespace

Result<std::unique_ptr<DecodeLoop>> DecodeLoop::Create(const ModelConfig& config, DeviceKind device,
                                                       int64_t num_threads, int64_t max_batch,
                                                       int64_t max_tokens) {
  const int64_t blocks_each = (max_tokens + kBlockTokens - 1) / kBlockTokens;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder,
                        CreateDecoder(device, config,
                                      {.dtype = Dtype::kBF16,
                                       .num_blocks = max_batch * blocks_each,
                                       .num_threads = num_threads}));
  std::unique_ptr<DecodeLoop> loop(new DecodeLoop());
  loop->decoder_ = std::move(decoder);
  PACE_ASSIGN_OR_RETURN(loop->weights_, RandomPrepared(*loop->decoder_, device));
  loop->Install();
  for (int64_t s = 0; s < max_batch; ++s) {
    std::vector<BlockId>& blocks = loop->blocks_.emplace_back();
    // Scattered over the cache, as those of a running engine are.
    for (int64_t b = 0; b < blocks_each; ++b) {
      blocks.push_back(static_cast<BlockId>(b * max_batch + s));
    }
  }
  return loop;
}

double DecodeLoop::Install() {
  const WallClock clock;
  decoder_->Install(weights_);
  return clock.Now().count();
}

Result<double> DecodeLoop::Prefill(int64_t batch, int64_t context) {
  const CounterRandom random(kSeed, 1);
  const auto vocab_size = static_cast<double>(decoder_->config().vocab_size);
  const int64_t at_once = std::max<int64_t>(1, kPassTokens / context);
  const WallClock clock;
  for (int64_t first = 0; first < batch; first += at_once) {
    Pass pass;
    for (int64_t s = first; s < std::min(batch, first + at_once); ++s) {
      for (int64_t i = 0; i < context; ++i) {
        const double u = random.Uniform(static_cast<uint64_t>(s), static_cast<uint64_t>(i));
        pass.tokens.push_back(static_cast<TokenId>(u * vocab_size));
      }
      pass.chunks.push_back(
          {.start = 0, .num_tokens = context, .blocks = blocks_[static_cast<size_t>(s)]});
    }
    PACE_RETURN_IF_ERROR(decoder_->Run(pass).status());
  }
  return clock.Now().count();
}

Pass DecodeLoop::MakePass(int64_t batch, int64_t context) const {
  Pass pass;
  pass.tokens.assign(static_cast<size_t>(batch), 1);
  for (int64_t s = 0; s < batch; ++s) {
    pass.chunks.push_back(
        {.start = context, .num_tokens = 1, .blocks = blocks_[static_cast<size_t>(s)]});
    pass.samples.push_back({.row = s,
                            .options = {.temperature = 1.0},
                            .key = {.seed = kSeed, .prompt = s, .response = 0, .token = 0}});
  }
  return pass;
}

Result<std::vector<DecodePart>> DecodeLoop::Profile(int64_t batch, int64_t context) {
  return ProfileCudaDecode(*decoder_, MakePass(batch, context));
}

Result<double> DecodeLoop::Decode(int64_t batch, int64_t context, int64_t new_tokens) {
  Pass pass = MakePass(batch, context);
  const WallClock clock;
  for (int64_t token = 0; token < new_tokens; ++token) {
    PACE_ASSIGN_OR_RETURN(const PassResult result, decoder_->Run(pass));
    for (size_t s = 0; s < pass.tokens.size(); ++s) {
      pass.tokens[s] = result.samples[s].token;
      ++pass.chunks[s].start;
      ++pass.samples[s].key.token;
    }
  }
  return clock.Now().count();
}

}  // namespace pace
