#include "model/cuda/cuda_decoder.h"

#include <algorithm>
#include <chrono>
#include <shared_mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "model/cuda/cache_layout.h"
#include "model/cuda/capture_gate.h"
#include "model/cuda/cuda_ops.h"
#include "model/cuda/device_memory.h"
#include "model/cuda/pass_graphs.h"
#include "model/cuda/pass_profile.h"
#include "model/cuda/pass_tables.h"
#include "model/cuda/weight_layout.h"
#include "model/network.h"
#include "model/pass_check.h"

namespace pace {
namespace cuda {
namespace {

constexpr int kLeastCapability = 90;
constexpr int kLaunchAttempts = 8;
// Kept states that are scored at once.
constexpr int64_t kKeptAtOnce = 1024;

enum class Work {
  kDecode,  // a pass that may be a graph
  kPass,
  kKept,  // scores from kept states
};

Status CheckConfig(const ModelConfig& config) {
  if (config.head_dim > kMaxHeadDim || config.head_dim % 2 != 0) {
    return InvalidArgument("head_dim = ", config.head_dim, ": must be even and at most ",
                           kMaxHeadDim, " on a GPU");
  }
  if (config.vocab_size > kMaxVocabulary) {
    return InvalidArgument("vocab_size = ", config.vocab_size, ": must be at most ", kMaxVocabulary,
                           " on a GPU");
  }
  if (!config.moe) return Status::Ok();
  if (config.moe->num_experts > kMaxExperts || config.moe->num_experts_per_token > kMaxChosen) {
    return InvalidArgument("num_experts = ", config.moe->num_experts,
                           ", num_experts_per_tok = ", config.moe->num_experts_per_token,
                           ": must be at most ", kMaxExperts, " and ", kMaxChosen, " on a GPU");
  }
  return Status::Ok();
}

int64_t CacheBlockBytes(const ModelConfig& config, Element element) {
  const int padded = PaddedHeadDim(static_cast<int>(config.head_dim));
  return config.num_kv_heads * 2 * PageElements(padded) * BytesOf(element);
}

class CudaDecoder : public Decoder {
 public:
  static Result<std::unique_ptr<CudaDecoder>> Create(const ModelConfig& config,
                                                     const DecoderOptions& options);
  ~CudaDecoder() override {
    graphs_.Drop();
    if (stream_ != nullptr) {
      (void)cudaStreamSynchronize(stream_);
      (void)cudaStreamDestroy(stream_);
    }
  }

  const ModelConfig& config() const override { return config_; }
  int64_t num_blocks() const override { return num_blocks_; }
  bool deterministic() const override { return false; }

  Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet& weights) const override;
  Result<std::shared_ptr<const DecoderWeights>> PrepareRandom(uint64_t seed,
                                                              double deviation) const;
  void Install(std::shared_ptr<const DecoderWeights> weights) override;
  Result<PassResult> Run(const Pass& pass) override;
  void CopyBlocks(std::span<const BlockCopy> copies) override;
  Result<std::vector<DecodePart>> Profile(const Pass& pass);

 private:
  CudaDecoder(const ModelConfig& config, const DecoderOptions& options)
      : config_(config),
        element_(options.dtype == Dtype::kBF16 ? Element::kHalf : Element::kFloat),
        num_blocks_(options.num_blocks),
        keeps_states_(options.keep_states),
        layout_(config_, element_),
        // One block beyond those of the caller.
        tables_(static_cast<BlockId>(options.num_blocks), config.num_heads / config.num_kv_heads) {}

  int64_t layer_bytes() const { return (num_blocks_ + 1) * CacheBlockBytes(config_, element_); }
  Status AllocateStates();
  Result<std::shared_ptr<CudaWeights>> AllocateWeights() const;
  Result<std::vector<float>> RunKept(std::span<const ScoreRequest> scores) override;
  // Builds the tables, with room for what they name, and runs.
  Result<PassResult> RunWork(const Pass& pass, int64_t padded_rows, Work work);
  void LaunchWork(Work work);
  Status Launch(Work work);
  Status LaunchPatiently(Work work);
  Status Excuse(const Status& status) const;
  Result<PassResult> Collect(const Pass& pass);
  void Copy(const std::vector<int32_t>& pairs);

  const ModelConfig config_;
  const Element element_;
  const int64_t num_blocks_;
  const bool keeps_states_;
  const WeightLayout layout_;
  PassTables tables_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<CudaOps> ops_;
  DeviceMemory cache_;
  DeviceMemory states_;  // by place in the cache
  DeviceMemory weights_;
  NetworkWeights<CudaOps> network_;
  bool is_installed_ = false;
  DeviceMemory copies_;
  PinnedMemory answers_;
  PassGraphs graphs_;
  // Of what returns nothing; the next pass reports it.
  Status status_;
};

Result<std::unique_ptr<CudaDecoder>> CudaDecoder::Create(const ModelConfig& config,
                                                         const DecoderOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_RETURN_IF_ERROR(CheckConfig(config));
  const Result<CudaDevice> device = FindCudaDevice();
  if (!device.ok()) return device.status();
  if (device->capability < kLeastCapability) {
    return Unavailable("device = cuda: ", device->name, " has compute capability ",
                       device->capability / 10, ".", device->capability % 10,
                       ": must be 9.0 or later");
  }
  std::unique_ptr<CudaDecoder> decoder(new CudaDecoder(config, options));
  int least_urgent = 0;
  int most_urgent = 0;
  PACE_RETURN_IF_ERROR(
      ToStatus(cudaDeviceGetStreamPriorityRange(&least_urgent, &most_urgent), "stream"));
  PACE_RETURN_IF_ERROR(
      ToStatus(cudaStreamCreateWithPriority(&decoder->stream_, cudaStreamNonBlocking, most_urgent),
               "stream"));
  Result<DeviceMemory> weights = DeviceMemory::Allocate(decoder->layout_.num_bytes(), "weights");
  if (!weights.ok()) return weights.status();
  decoder->weights_ = std::move(*weights);
  Result<DeviceMemory> cache =
      DeviceMemory::Allocate(config.num_layers * decoder->layer_bytes(), "KV cache");
  if (!cache.ok()) return cache.status();
  decoder->cache_ = std::move(*cache);
  Result<std::unique_ptr<CudaOps>> ops =
      CudaOps::Create(decoder->config_, decoder->element_, decoder->stream_);
  if (!ops.ok()) return ops.status();
  decoder->ops_ = std::move(*ops);
  if (options.keep_states) PACE_RETURN_IF_ERROR(decoder->AllocateStates());
  decoder->network_ = decoder->layout_.At(decoder->weights_.at());
  return decoder;
}

Status CudaDecoder::AllocateStates() {
  const int64_t state_bytes = StrideOf(config_.hidden_size) * BytesOf(element_);
  Result<DeviceMemory> states =
      DeviceMemory::Allocate((num_blocks_ + 1) * kBlockTokens * state_bytes, "states");
  if (!states.ok()) return states.status();
  states_ = std::move(*states);
  // Once and for all: workspaces that move take the graphs with them.
  return ops_->Reserve(0, kKeptAtOnce).status();
}

Result<std::shared_ptr<CudaWeights>> CudaDecoder::AllocateWeights() const {
  auto prepared = std::make_shared<CudaWeights>();
  Result<DeviceMemory> memory = DeviceMemory::Allocate(layout_.num_bytes(), "weights");
  if (!memory.ok()) return memory.status();
  prepared->memory = std::move(*memory);
  return prepared;
}

Result<std::shared_ptr<const DecoderWeights>> CudaDecoder::Prepare(const WeightSet& weights) const {
  if (weights.residence() == Residence::kDevice) {
    auto as_they_are = std::make_shared<CudaWeights>();
    as_they_are->on_device = weights;
    return std::shared_ptr<const DecoderWeights>(std::move(as_they_are));
  }
  const Result<std::shared_ptr<CudaWeights>> prepared = AllocateWeights();
  if (!prepared.ok()) return prepared.status();
  PACE_RETURN_IF_ERROR(layout_.Upload(weights, (*prepared)->memory.at()));
  return std::shared_ptr<const DecoderWeights>(*prepared);
}

Result<std::shared_ptr<const DecoderWeights>> CudaDecoder::PrepareRandom(uint64_t seed,
                                                                         double deviation) const {
  const Result<std::shared_ptr<CudaWeights>> prepared = AllocateWeights();
  if (!prepared.ok()) return prepared.status();
  PACE_RETURN_IF_ERROR(layout_.FillRandom(seed, deviation, (*prepared)->memory.at()));
  return std::shared_ptr<const DecoderWeights>(*prepared);
}

void CudaDecoder::Install(std::shared_ptr<const DecoderWeights> weights) {
  const auto prepared = std::dynamic_pointer_cast<const CudaWeights>(std::move(weights));
  PACE_CHECK(prepared != nullptr, "weights that a decoder of this config prepared");
  cudaError_t error = cudaSuccess;
  if (prepared->on_device.residence() == Residence::kDevice) {
    layout_.Convert(prepared->on_device, weights_.at(), stream_);
    error = cudaGetLastError();
  } else {
    PACE_CHECK(prepared->memory.num_bytes() == weights_.num_bytes(), "weights of another config");
    error = cudaMemcpyAsync(weights_.at(), prepared->memory.at(),
                            static_cast<size_t>(weights_.num_bytes()), cudaMemcpyDeviceToDevice,
                            stream_);
  }
  // The source may go when this returns.
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream_);
  if (status_.ok()) status_ = ToStatus(error, "weights");
  is_installed_ = true;
}

void CudaDecoder::LaunchWork(Work work) {
  ops_->Begin(tables_, cache_.at(), layer_bytes());
  if (work == Work::kKept) return ops_->AskKept(states_.at(), network_.head);
  const CudaOps::Rows hidden = RunNetwork(network_, *ops_);
  if (work == Work::kPass && keeps_states_) ops_->KeepStates(hidden, states_.at());
  ops_->Ask(hidden, network_.head);
}

Status CudaDecoder::Launch(Work work) {
  PACE_RETURN_IF_ERROR(std::exchange(status_, Status::Ok()));
  PACE_RETURN_IF_ERROR(tables_.Upload(stream_));
  cudaGraphExec_t graph = work == Work::kDecode ? graphs_.Find(tables_.shape()) : nullptr;
  if (graph != nullptr) return ToStatus(cudaGraphLaunch(graph, stream_), "graph");
  const std::shared_lock gate(CaptureGate());
  LaunchWork(work);
  return ops_->TakeStatus();
}

// An error that left the device as it was is no error: work may have met a capture
// in a library that knows nothing of the gate.
Status CudaDecoder::Excuse(const Status& status) const {
  if (status.ok()) return status;
  (void)cudaGetLastError();
  const cudaError_t error = cudaStreamSynchronize(stream_);
  if (error == cudaSuccess) return Status::Ok();
  return Unavailable(status.message(), " (", cudaGetErrorString(error), ")");
}

// A pass that was queued in part may be queued again: it writes what it wrote.
Status CudaDecoder::LaunchPatiently(Work work) {
  Status status;
  for (int attempt = 0; attempt < kLaunchAttempts; ++attempt) {
    status = Launch(work);
    if (status.ok()) return status;
    PACE_RETURN_IF_ERROR(Excuse(status));
    std::this_thread::sleep_for(std::chrono::milliseconds(1 << attempt));
  }
  return status;
}

Result<PassResult> CudaDecoder::Collect(const Pass& pass) {
  const size_t count = pass.samples.size() + pass.scores.size();
  const size_t num_bytes = count * sizeof(Answer);
  if (std::cmp_less(answers_.num_bytes(), num_bytes)) {
    Result<PinnedMemory> larger = PinnedMemory::Allocate(static_cast<int64_t>(2 * num_bytes));
    if (!larger.ok()) return larger.status();
    answers_ = std::move(*larger);
  }
  PACE_RETURN_IF_ERROR(ToStatus(cudaMemcpyAsync(answers_.As<Answer>(), ops_->answers(), num_bytes,
                                                cudaMemcpyDeviceToHost, stream_),
                                "answers"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream_), "pass"));
  PassResult result;
  const Answer* const answers = answers_.As<Answer>();
  for (size_t i = 0; i < pass.samples.size(); ++i) {
    result.samples.push_back({.token = answers[i].token,
                              .logprob = answers[i].logprob,
                              .sampled_logprob = answers[i].sampled_logprob});
  }
  for (size_t i = pass.samples.size(); i < count; ++i) {
    result.logprobs.push_back(answers[i].logprob);
  }
  return result;
}

Result<PassResult> CudaDecoder::RunWork(const Pass& pass, int64_t padded_rows, Work work) {
  const Result<bool> tables_moved = tables_.Build(pass, padded_rows);
  if (!tables_moved.ok()) return tables_moved.status();
  const PassShape& shape = tables_.shape();
  const Result<bool> rows_moved = ops_->Reserve(shape.num_rows, shape.num_questions);
  if (!rows_moved.ok()) return rows_moved.status();
  if (*tables_moved || *rows_moved) graphs_.Drop();
  PACE_RETURN_IF_ERROR(LaunchPatiently(work));
  return Collect(pass);
}

Result<PassResult> CudaDecoder::Run(const Pass& pass) {
  PACE_CHECK(is_installed_, "Install first");
  CheckPass(pass, config_, num_blocks_);
  if (pass.tokens.empty()) return PassResult{};
  const int64_t padded = IsDecodeOnly(pass) ? PaddedRows(std::ssize(pass.tokens)) : 0;
  Result<PassResult> result = RunWork(pass, padded, padded > 0 ? Work::kDecode : Work::kPass);
  if (!result.ok() || padded == 0 || graphs_.Find(tables_.shape()) != nullptr) return result;
  // What ran once is loaded, and its products are planned: now it can be captured.
  // Where that fails, another pass of this shape will try again.
  PACE_RETURN_IF_ERROR(Excuse(graphs_.Capture(tables_.shape(), stream_, [this] {
    LaunchWork(Work::kDecode);
    return ops_->TakeStatus();
  })));
  return result;
}

Result<std::vector<float>> CudaDecoder::RunKept(std::span<const ScoreRequest> scores) {
  PACE_CHECK(is_installed_ && keeps_states_, "states that were kept");
  CheckKept(scores, config_, num_blocks_);
  std::vector<float> logprobs;
  for (size_t begin = 0; begin < scores.size(); begin += kKeptAtOnce) {
    const std::span<const ScoreRequest> some =
        scores.subspan(begin, std::min<size_t>(kKeptAtOnce, scores.size() - begin));
    Pass pass;
    pass.scores.assign(some.begin(), some.end());
    const Result<PassResult> result = RunWork(pass, 0, Work::kKept);
    if (!result.ok()) return result.status();
    logprobs.insert(logprobs.end(), result->logprobs.begin(), result->logprobs.end());
  }
  return logprobs;
}

Result<std::vector<DecodePart>> CudaDecoder::Profile(const Pass& pass) {
  PACE_CHECK(IsDecodeOnly(pass), "a decode pass");
  // Loads kernels and builds the tables, which stay on the device.
  const Result<PassResult> result = Run(pass);
  if (!result.ok()) return result.status();
  int64_t num_context_tokens = 0;
  for (const Chunk& chunk : pass.chunks) num_context_tokens += chunk.start + chunk.num_tokens;
  return ProfilePass({.config = config_,
                      .network = network_,
                      .tables = tables_,
                      .cache = cache_.at(),
                      .layer_bytes = layer_bytes(),
                      .num_context_tokens = num_context_tokens,
                      .element = element_},
                     *ops_, stream_);
}

void CudaDecoder::Copy(const std::vector<int32_t>& pairs) {
  if (pairs.empty()) return;
  const auto num_bytes = static_cast<int64_t>(pairs.size() * sizeof(int32_t));
  if (copies_.num_bytes() < num_bytes) {
    Result<DeviceMemory> larger = DeviceMemory::Allocate(2 * num_bytes, "copies");
    if (!larger.ok()) {
      status_ = larger.status();
      return;
    }
    copies_ = std::move(*larger);
  }
  const cudaError_t error = cudaMemcpyAsync(
      copies_.at(), pairs.data(), static_cast<size_t>(num_bytes), cudaMemcpyHostToDevice, stream_);
  if (status_.ok()) status_ = ToStatus(error, "copies");
  CopyCacheBlocks(cache_.at(), layer_bytes(), CacheBlockBytes(config_, element_),
                  config_.num_layers, copies_.As<int32_t>(), static_cast<int64_t>(pairs.size()) / 2,
                  stream_);
}

void CudaDecoder::CopyBlocks(std::span<const BlockCopy> copies) {
  // Copies run beside each other, so one that touches an earlier one's target
  // begins anew.
  std::vector<int32_t> pairs;
  std::vector<BlockId> written;
  for (const BlockCopy& copy : copies) {
    PACE_CHECK(copy.from >= 0 && copy.from < num_blocks_ && copy.to >= 0 && copy.to < num_blocks_,
               copy.from, " to ", copy.to, " of ", num_blocks_);
    if (copy.from == copy.to) continue;
    const bool is_free = std::ranges::find(written, copy.from) == written.end() &&
                         std::ranges::find(written, copy.to) == written.end();
    if (!is_free) {
      Copy(std::exchange(pairs, {}));
      written.clear();
    }
    pairs.insert(pairs.end(), {copy.from, copy.to});
    written.push_back(copy.to);
  }
  Copy(pairs);
}

}  // namespace
}  // namespace cuda

Result<std::unique_ptr<Decoder>> CreateCudaDecoder(const ModelConfig& config,
                                                   const DecoderOptions& options) {
  Result<std::unique_ptr<cuda::CudaDecoder>> decoder = cuda::CudaDecoder::Create(config, options);
  if (!decoder.ok()) return decoder.status();
  return std::unique_ptr<Decoder>(std::move(*decoder));
}

Result<std::shared_ptr<const DecoderWeights>> RandomCudaWeights(const Decoder& decoder,
                                                                uint64_t seed, double deviation) {
  const auto* const ours = dynamic_cast<const cuda::CudaDecoder*>(&decoder);
  PACE_CHECK(ours != nullptr, "a decoder of CreateCudaDecoder");
  return ours->PrepareRandom(seed, deviation);
}

Result<std::vector<DecodePart>> ProfileCudaDecode(Decoder& decoder, const Pass& pass) {
  auto* const ours = dynamic_cast<cuda::CudaDecoder*>(&decoder);
  PACE_CHECK(ours != nullptr, "a decoder of CreateCudaDecoder");
  return ours->Profile(pass);
}

}  // namespace pace
