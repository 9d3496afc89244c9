#include "model/cpu/cpu_decoder.h"

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/status.h"
#include "model/cpu/cpu_ops.h"
#include "model/cpu/head.h"
#include "model/cpu/kv_cache.h"
#include "model/cpu/thread_pool.h"
#include "model/decoder.h"
#include "model/network.h"
#include "model/weight_set.h"

namespace pace {
namespace {

// The weights of one policy version, packed for the kernels. Immutable.
struct CpuWeights : DecoderWeights {
  NetworkWeights<CpuOps> network;
};

// Rows of several matrices, one below the other.
class StackedRows {
 public:
  StackedRows(const WeightSet& weights, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      Part part;
      part.weight = &weights.Get(name + ".weight");
      PACE_CHECK(part.weight->shape.size() == 2, name);
      part.end = num_outputs() + part.weight->shape[0];
      const std::string bias = name + ".bias";
      if (weights.views().contains(bias)) part.bias = weights.Floats(bias);
      parts_.push_back(std::move(part));
    }
  }

  int64_t num_outputs() const { return parts_.empty() ? 0 : parts_.back().end; }
  int64_t num_inputs() const { return parts_.front().weight->shape[1]; }

  void ReadRow(int64_t output, float* row) const {
    const auto [part, index] = Find(output);
    const auto size = part->weight->bytes.size() / static_cast<size_t>(part->weight->shape[0]);
    const TensorView view = {
        .dtype = part->weight->dtype,
        .shape = {num_inputs()},
        .bytes = part->weight->bytes.subspan(static_cast<size_t>(index) * size, size)};
    ReadFloats(view, {row, static_cast<size_t>(num_inputs())});
  }

  PackedMatrix::Source AsSource() const {
    bool has_bias = false;
    for (const Part& part : parts_) has_bias = has_bias || !part.bias.empty();
    const auto read_bias = [this](int64_t output) {
      const auto [part, index] = Find(output);
      return part->bias.empty() ? 0.0F : part->bias[static_cast<size_t>(index)];
    };
    return {.num_outputs = num_outputs(),
            .num_inputs = num_inputs(),
            .has_bias = has_bias,
            .read_row = [this](int64_t output, float* row) { ReadRow(output, row); },
            .read_bias = read_bias};
  }

 private:
  struct Part {
    const TensorView* weight = nullptr;
    std::vector<float> bias;
    int64_t end = 0;
  };

  std::pair<const Part*, int64_t> Find(int64_t output) const {
    int64_t begin = 0;
    for (const Part& part : parts_) {
      if (output < part.end) return {&part, output - begin};
      begin = part.end;
    }
    PACE_CHECK(false, "output ", output, " of ", num_outputs());
    return {};
  }

  std::vector<Part> parts_;
};

// The loader of network.h. The first error sticks; matrices are empty after it.
class CpuLoader {
 public:
  CpuLoader(const WeightSet& weights, bool as_bf16, const Kernels& kernels)
      : weights_(weights), as_bf16_(as_bf16), kernels_(kernels) {}

  CpuOps::Matrix Stack(const std::vector<std::string>& names) {
    return Keep(Pack(kernels_, StackedRows(weights_, names).AsSource(), as_bf16_));
  }
  CpuOps::Matrix GateUp(const std::string& gate, const std::string& up) {
    return Keep(PackGated(kernels_, StackedRows(weights_, {gate, up}).AsSource(), as_bf16_));
  }
  CpuOps::Vector Load(const std::string& name) { return weights_.Floats(name + ".weight"); }

  CpuOps::Matrix Embedding(const std::string& name) {
    const StackedRows rows(weights_, {name});
    CpuOps::Matrix matrix{.panels = {}, .rows = Activations(rows.num_inputs(), as_bf16_)};
    Activations& table = matrix.rows;
    table.Reserve(rows.num_outputs());
    std::vector<float> row(static_cast<size_t>(rows.num_inputs()));
    for (int64_t token = 0; token < rows.num_outputs(); ++token) {
      if (as_bf16_) {
        rows.ReadRow(token, row.data());
        kernels_.to_bf16(row.data(), rows.num_inputs(), table.halves(token));
      } else {
        rows.ReadRow(token, table.floats(token));
      }
    }
    return matrix;
  }

  const Status& status() const { return status_; }

 private:
  CpuOps::Matrix Keep(Result<PackedMatrix> packed) {
    if (packed.ok()) return {.panels = std::move(packed).value(), .rows = {}};
    if (status_.ok()) status_ = packed.status().At("weights");
    return {};
  }

  const WeightSet& weights_;
  const bool as_bf16_;
  const Kernels& kernels_;
  Status status_;
};

// Copies and lays out every weight; a tied head is packed from the embedding. Fails without the
// memory for it. Thread-safe.
Result<std::shared_ptr<const CpuWeights>> PackWeights(const ModelConfig& config,
                                                      const WeightSet& weights, bool as_bf16,
                                                      const Kernels& kernels) {
  CpuLoader loader(weights, as_bf16, kernels);
  auto packed = std::make_shared<CpuWeights>();
  packed->network = LoadNetwork<CpuOps>(config, loader);
  if (!loader.status().ok()) return loader.status();
  return std::shared_ptr<const CpuWeights>(std::move(packed));
}

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
