#include "model/cpu/cpu_decoder.h"

#include <cstring>
#include <utility>

#include "core/check.h"
#include "model/cpu/cpu_ops.h"
#include "model/cpu/cpu_weights.h"
#include "model/cpu/head.h"
#include "model/cpu/kv_cache.h"
#include "model/cpu/thread_pool.h"
#include "model/decoder.h"
#include "model/network.h"

namespace pace {
namespace {

class CpuDecoder : public Decoder {
 public:
  CpuDecoder(const ModelConfig& config, const DecoderOptions& options, Isa isa, KvCache cache)
      : config_(config),
        is_bf16_(options.dtype == Dtype::kBF16),
        kernels_(KernelsOf(isa)),
        cache_(std::move(cache)),
        threads_(options.num_threads),
        ops_(config_, is_bf16_, kernels_, threads_),
        head_(config_, is_bf16_, kernels_, threads_),
        caches_states_(options.cache_states),
        states_(config.hidden_size, is_bf16_) {
    if (caches_states_) states_.Reserve(cache_.num_blocks() * kBlockTokens);
  }

  const ModelConfig& config() const override { return config_; }
  int64_t num_blocks() const override { return cache_.num_blocks(); }
  bool deterministic() const override { return true; }

  Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet& weights) const override {
    PACE_ASSIGN_OR_RETURN(std::shared_ptr<const CpuWeights> packed,
                          PackWeights(config_, weights, is_bf16_, kernels_));
    return std::shared_ptr<const DecoderWeights>(std::move(packed));
  }

  void Install(std::shared_ptr<const DecoderWeights> weights) override {
    weights_ = std::dynamic_pointer_cast<const CpuWeights>(std::move(weights));
    PACE_CHECK(weights_ != nullptr, "weights that a CPU decoder prepared");
  }

  Result<PassResult> Run(const Pass& pass) override {
    PACE_CHECK(weights_ != nullptr, "Install first");
    CheckPass(pass, config_, num_blocks());
    if (pass.tokens.empty()) return PassResult{};
    ops_.Begin(pass, cache_);
    const CpuOps::Rows hidden = RunNetwork(weights_->network, ops_);
    if (caches_states_) CacheStates(pass, *hidden.at);
    return head_.Run(pass, *hidden.at, weights_->network.head.panels, ops_.gemm());
  }

  void CopyBlocks(std::span<const BlockCopy> copies) override { cache_.Copy(copies); }

 private:
  Result<std::vector<float>> RunCached(std::span<const ScoreRequest> scores) override {
    PACE_CHECK(weights_ != nullptr && caches_states_, "no hidden states are cached");
    CheckCached(scores, config_, num_blocks());
    Pass pass;
    pass.scores.assign(scores.begin(), scores.end());
    return head_.Run(pass, states_, weights_->network.head.panels, ops_.gemm()).logprobs;
  }

  void CacheStates(const Pass& pass, const Activations& hidden) {
    int64_t row = 0;
    for (const Chunk& chunk : pass.chunks) {
      for (int64_t i = 0; i < chunk.num_tokens; ++i, ++row) {
        std::memcpy(states_.bytes(SlotOf(chunk.blocks, chunk.start + i)), hidden.bytes(row),
                    static_cast<size_t>(hidden.row_bytes()));
      }
    }
  }

  const ModelConfig config_;
  const bool is_bf16_;
  const Kernels& kernels_;
  KvCache cache_;
  ThreadPool threads_;
  CpuOps ops_;
  Head head_;
  const bool caches_states_;
  Activations states_;  // by cache slot
  std::shared_ptr<const CpuWeights> weights_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> CreateCpuDecoderWith(const ModelConfig& config,
                                                      const DecoderOptions& options, Isa isa) {
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_ASSIGN_OR_RETURN(KvCache cache, KvCache::Create(config, options.dtype, options.num_blocks));
  return std::unique_ptr<Decoder>(
      std::make_unique<CpuDecoder>(config, options, isa, std::move(cache)));
}

Result<std::unique_ptr<Decoder>> CreateCpuDecoder(const ModelConfig& config,
                                                  const DecoderOptions& options) {
  return CreateCpuDecoderWith(config, options, BestIsa());
}

}  // namespace pace
