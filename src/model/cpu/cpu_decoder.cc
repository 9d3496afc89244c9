#include "model/cpu/cpu_decoder.h"

#include <utility>

#include "core/check.h"
#include "model/cpu/cpu_ops.h"
#include "model/cpu/cpu_weights.h"
#include "model/cpu/head.h"
#include "model/cpu/kv_cache.h"
#include "model/cpu/thread_team.h"
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
        team_(options.num_threads),
        ops_(config_, is_bf16_, kernels_, team_),
        head_(config_, is_bf16_, kernels_, team_) {}

  const ModelConfig& config() const override { return config_; }
  int64_t num_blocks() const override { return cache_.num_blocks(); }
  bool deterministic() const override { return true; }

  Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet& weights) const override {
    Result<std::shared_ptr<const CpuWeights>> packed =
        PackWeights(config_, weights, is_bf16_, kernels_);
    if (!packed.ok()) return packed.status();
    return std::shared_ptr<const DecoderWeights>(std::move(packed).value());
  }

  void Install(std::shared_ptr<const DecoderWeights> weights) override {
    weights_ = std::dynamic_pointer_cast<const CpuWeights>(std::move(weights));
    PACE_CHECK(weights_ != nullptr, "weights that a CPU decoder prepared");
  }

  Result<PassResult> Run(const Pass& pass) override {
    PACE_CHECK(weights_ != nullptr, "Install first");
    CheckPass(pass);
    if (pass.tokens.empty()) return PassResult{};
    ops_.Begin(pass, cache_);
    const CpuOps::Rows hidden = RunNetwork(weights_->network, ops_);
    return head_.Run(pass, *hidden.at, weights_->network.head.panels, ops_.gemm());
  }

  void CopyBlocks(std::span<const BlockCopy> copies) override { cache_.Copy(copies); }

 private:
  void CheckPass(const Pass& pass) const {
    int64_t num_rows = 0;
    for (const Chunk& chunk : pass.chunks) {
      PACE_CHECK(chunk.start >= 0 && chunk.num_tokens >= 1, chunk.start, ", ", chunk.num_tokens);
      num_rows += chunk.num_tokens;
      const int64_t num_tokens = chunk.start + chunk.num_tokens;
      PACE_CHECK(static_cast<int64_t>(chunk.blocks.size()) * kBlockTokens >= num_tokens,
                 chunk.blocks.size(), " blocks for ", num_tokens, " tokens");
      for (const BlockId block : chunk.blocks) {
        PACE_CHECK(block >= 0 && block < num_blocks(), "block ", block, " of ", num_blocks());
      }
    }
    PACE_CHECK(num_rows == static_cast<int64_t>(pass.tokens.size()), num_rows, " rows, ",
               pass.tokens.size(), " tokens");
    for (const TokenId token : pass.tokens) CheckToken(token);
    for (const SampleRequest& sample : pass.samples) {
      PACE_CHECK(sample.row >= 0 && sample.row < num_rows, "row ", sample.row, " of ", num_rows);
    }
    for (const ScoreRequest& score : pass.scores) {
      PACE_CHECK(score.row >= 0 && score.row < num_rows, "row ", score.row, " of ", num_rows);
      CheckToken(score.target);
    }
  }

  void CheckToken(TokenId token) const {
    PACE_CHECK(token >= 0 && token < config_.vocab_size, "token ", token, " of ",
               config_.vocab_size);
  }

  const ModelConfig config_;
  const bool is_bf16_;
  const Kernels& kernels_;
  KvCache cache_;
  ThreadTeam team_;
  CpuOps ops_;
  Head head_;
  std::shared_ptr<const CpuWeights> weights_;
};

}  // namespace

Status DecoderOptions::Validate() const {
  if (dtype != Dtype::kF32 && dtype != Dtype::kBF16) {
    return InvalidArgument("dtype = ", DtypeName(dtype), ": must be F32 or BF16");
  }
  if (num_blocks < 1) {
    return InvalidArgument("num_blocks = ", num_blocks, ": must be >= 1 (a block holds ",
                           kBlockTokens, " tokens)");
  }
  if (num_threads < 1 || num_threads > 1024) {
    return InvalidArgument("num_threads = ", num_threads, ": must be from 1 to 1024");
  }
  return Status::Ok();
}

Result<std::unique_ptr<Decoder>> CreateCpuDecoderWith(const ModelConfig& config,
                                                      const DecoderOptions& options, Isa isa) {
  PACE_RETURN_IF_ERROR(options.Validate());
  Result<KvCache> cache = KvCache::Create(config, options.dtype, options.num_blocks);
  if (!cache.ok()) return cache.status();
  return std::unique_ptr<Decoder>(
      std::make_unique<CpuDecoder>(config, options, isa, std::move(cache).value()));
}

Result<std::unique_ptr<Decoder>> CreateCpuDecoder(const ModelConfig& config,
                                                  const DecoderOptions& options) {
  return CreateCpuDecoderWith(config, options, BestIsa());
}

}  // namespace pace
