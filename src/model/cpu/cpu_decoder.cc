#include "model/cpu/cpu_decoder.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/status.h"
#include "model/cpu/cpu_ops.h"
#include "model/cpu/gemm.h"
#include "model/cpu/kernels/kernels.h"
#include "model/cpu/kv_cache.h"
#include "model/cpu/packed_matrix.h"
#include "model/cpu/sampler.h"
#include "model/cpu/thread_pool.h"
#include "model/decoder.h"
#include "model/network.h"
#include "model/weight_set.h"

namespace pace {
namespace {

// Rows whose logits are there at once: enough to use each weight well.
constexpr size_t kRowsAtOnce = 128;

// From last hidden states to samples and scores.
//
// Logits are computed for the requested rows alone, a bounded number at a time, so their memory
// does not depend on the pass.
class Head {
 public:
  Head(const ModelConfig& config, bool is_bf16, const Kernels& kernels, ThreadPool& threads);

  // `hidden` has a row per token of the pass.
  PassResult Run(const Pass& pass, const Activations& hidden, const PackedMatrix& matrix,
                 Gemm& gemm);

 private:
  // One sample or score.
  struct LogitsRequest {
    int64_t row = 0;
    bool is_sample = false;
    size_t index = 0;  // in pass.samples or pass.scores
  };

  void CollectRequests(const Pass& pass);
  // Logits of rows_[begin, end).
  void ComputeLogits(const Activations& hidden, const PackedMatrix& matrix, size_t begin,
                     size_t end, Gemm& gemm);
  void Compute(const Pass& pass, const LogitsRequest& request, std::span<const float> logits,
               std::vector<float>& scratch, PassResult& result) const;

  const int64_t vocab_size_;
  const Kernels& kernels_;
  ThreadPool& threads_;
  std::vector<LogitsRequest> requests_;  // by row
  std::vector<int64_t> rows_;            // requested, rising
  std::vector<size_t> first_request_;    // of each of rows_, and the end
  Activations requested_;
  Activations logits_;
  std::vector<std::vector<float>> scratch_;  // one per worker
};

Head::Head(const ModelConfig& config, bool is_bf16, const Kernels& kernels, ThreadPool& threads)
    : vocab_size_(config.vocab_size),
      kernels_(kernels),
      threads_(threads),
      requested_(config.hidden_size, is_bf16),
      logits_(config.vocab_size, false),
      scratch_(static_cast<size_t>(threads.num_threads())) {}

void Head::CollectRequests(const Pass& pass) {
  requests_.clear();
  for (size_t i = 0; i < pass.samples.size(); ++i) {
    requests_.push_back({.row = pass.samples[i].row, .is_sample = true, .index = i});
  }
  for (size_t i = 0; i < pass.scores.size(); ++i) {
    requests_.push_back({.row = pass.scores[i].row, .is_sample = false, .index = i});
  }
  std::sort(requests_.begin(), requests_.end(),
            [](const LogitsRequest& a, const LogitsRequest& b) { return a.row < b.row; });
  rows_.clear();
  first_request_.clear();
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (!rows_.empty() && rows_.back() == requests_[i].row) continue;
    rows_.push_back(requests_[i].row);
    first_request_.push_back(i);
  }
  first_request_.push_back(requests_.size());
}

void Head::ComputeLogits(const Activations& hidden, const PackedMatrix& matrix, size_t begin,
                         size_t end, Gemm& gemm) {
  const auto num_rows = static_cast<int64_t>(end - begin);
  requested_.Reserve(num_rows);
  logits_.Reserve(num_rows);
  for (int64_t i = 0; i < num_rows; ++i) {
    std::memcpy(requested_.bytes(i), hidden.bytes(rows_[begin + static_cast<size_t>(i)]),
                static_cast<size_t>(hidden.row_bytes()));
  }
  const GemmProduct product = {.matrix = &matrix,
                               .x = requested_.data(),
                               .x_stride = requested_.stride(),
                               .num_rows = num_rows,
                               .out = logits_.data(),
                               .out_stride = logits_.stride()};
  gemm.Run({&product, 1});
}

void Head::Compute(const Pass& pass, const LogitsRequest& request, std::span<const float> logits,
                   std::vector<float>& scratch, PassResult& result) const {
  if (request.is_sample) {
    const SampleRequest& sample = pass.samples[request.index];
    result.samples[request.index] =
        SampleWith(kernels_, logits, sample.options, sample.key, scratch);
  } else {
    const ScoreRequest& score = pass.scores[request.index];
    result.logprobs[request.index] = LogProbWith(kernels_, logits, score.scale, score.target);
  }
}

PassResult Head::Run(const Pass& pass, const Activations& hidden, const PackedMatrix& matrix,
                     Gemm& gemm) {
  CollectRequests(pass);
  PassResult result;
  result.samples.resize(pass.samples.size());
  result.logprobs.resize(pass.scores.size());
  for (size_t begin = 0; begin < rows_.size(); begin += kRowsAtOnce) {
    const size_t end = std::min(rows_.size(), begin + kRowsAtOnce);
    ComputeLogits(hidden, matrix, begin, end, gemm);
    const auto answer = [&](int64_t i, int64_t worker) {
      const std::span<const float> logits(logits_.floats(i), static_cast<size_t>(vocab_size_));
      const size_t at = begin + static_cast<size_t>(i);
      for (size_t q = first_request_[at]; q < first_request_[at + 1]; ++q) {
        Compute(pass, requests_[q], logits, scratch_[static_cast<size_t>(worker)], result);
      }
    };
    ForRows(threads_, static_cast<int64_t>(end - begin), 4 * vocab_size_, answer);
  }
  return result;
}

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
        quantization_(options.quantization),
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
    const bool is_rounded = quantization_ == Quantization::kFloat8;
    PACE_ASSIGN_OR_RETURN(
        std::shared_ptr<const CpuWeights> packed,
        PackWeights(config_, is_rounded ? RoundedToFloat8(config_, weights) : weights, is_bf16_,
                    kernels_));
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
  const Quantization quantization_;
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
