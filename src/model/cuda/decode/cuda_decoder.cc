#include "model/cuda/decode/cuda_decoder.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/check.h"
#include "model/cuda/cache_layout.h"
#include "model/cuda/decode/cuda_ops.h"
#include "model/cuda/decode/pass_profile.h"
#include "model/cuda/decode/pass_runner.h"
#include "model/cuda/decode/weight_layout.h"
#include "model/cuda/device_memory.h"
#include "model/decoder.h"
#include "model/network.h"
#include "model/speculative_pass.h"

namespace pace {
namespace cuda {
namespace {

constexpr int kLeastCapability = 90;
// Cached hidden states that are scored at a time.
constexpr int64_t kCachedAtOnce = 1024;

bool IsNone(int32_t row) {
  return row < 0;
}

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
    runner_.reset();
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }

  const ModelConfig& config() const override { return config_; }
  int64_t num_blocks() const override { return num_blocks_; }
  bool deterministic() const override { return false; }
  bool speculates() const override { return true; }

  Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet& weights) const override;
  Result<std::shared_ptr<const DecoderWeights>> PrepareRandom(uint64_t seed,
                                                              double deviation) const;
  void Install(std::shared_ptr<const DecoderWeights> weights) override;
  Result<PassResult> Run(const Pass& pass) override;
  void CopyBlocks(std::span<const BlockCopy> copies) override;
  Result<std::vector<DecodePart>> Profile(const Pass& pass);
  Result<int64_t> CountExperts(const Pass& pass);

 private:
  // A speculative pass that was queued.
  struct InFlight {
    SpeculativePass pass;
    std::optional<PassRunner::Ticket> ticket;
  };

  CudaDecoder(const ModelConfig& config, const DecoderOptions& options)
      : config_(config),
        element_(options.dtype == Dtype::kBF16 ? Element::kHalf : Element::kFloat),
        num_blocks_(options.num_blocks),
        layout_(config_, element_, options.quantization) {}

  int64_t layer_bytes() const { return (num_blocks_ + 1) * CacheBlockBytes(config_, element_); }
  Result<std::shared_ptr<CudaWeights>> AllocateWeights() const;
  Result<std::vector<float>> RunCached(std::span<const ScoreRequest> scores) override;
  void WaitForSpeculation() override;
  Result<PassResult> RunNow(const Pass& pass);
  // Completes a pass of which the chunks in `found` ran speculatively.
  Result<PassResult> RunRemaining(const Pass& pass, std::span<const int32_t> found,
                                  PassRunner::Ticket ticket);
  std::optional<PassRunner::Ticket> Begin(const SpeculativePass& next,
                                          std::span<const int32_t> sources);
  void DropSpeculative();
  // Runs a decode pass, whose batch metadata stays on the device, and describes it.
  Result<ProfiledPass> RunForProfile(const Pass& pass);
  void Copy(const std::vector<int32_t>& pairs);

  const ModelConfig config_;
  const Element element_;
  const int64_t num_blocks_;
  const WeightLayout layout_;
  cudaStream_t stream_ = nullptr;
  DeviceMemory cache_;
  DeviceMemory states_;  // by cache slot
  DeviceMemory weights_;
  NetworkWeights<CudaOps> network_;
  bool is_installed_ = false;
  // Of the last Install. After a failure no pass runs until an Install succeeds: it would sample
  // from other weights than the version says.
  Status installed_;
  DeviceMemory copies_;
  std::unique_ptr<PassRunner> runner_;
  InFlight speculative_;
  // Of calls that return nothing; the next pass reports it.
  Status status_;
};

Result<std::unique_ptr<CudaDecoder>> CudaDecoder::Create(const ModelConfig& config,
                                                         const DecoderOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_RETURN_IF_ERROR(CheckConfig(config));
  PACE_ASSIGN_OR_RETURN(const CudaDevice device, FindCudaDevice());
  if (device.capability < kLeastCapability) {
    return Unavailable("device = cuda: ", device.name, " has compute capability ",
                       device.capability / 10, ".", device.capability % 10,
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
  PACE_ASSIGN_OR_RETURN(decoder->weights_,
                        DeviceMemory::Allocate(decoder->layout_.num_bytes(), "weights"));
  PACE_ASSIGN_OR_RETURN(
      decoder->cache_,
      DeviceMemory::Allocate(config.num_layers * decoder->layer_bytes(), "KV cache"));
  if (options.cache_states) {
    const int64_t state_bytes = StrideOf(config.hidden_size) * BytesOf(decoder->element_);
    PACE_ASSIGN_OR_RETURN(
        decoder->states_,
        DeviceMemory::Allocate((decoder->num_blocks_ + 1) * kBlockTokens * state_bytes, "states"));
  }
  decoder->network_ = decoder->layout_.At(decoder->weights_.at());
  Result<std::unique_ptr<PassRunner>> runner =
      PassRunner::Create({.config = decoder->config_,
                          .network = decoder->network_,
                          .stream = decoder->stream_,
                          .element = decoder->element_,
                          // One block beyond those of the caller.
                          .spare_block = static_cast<BlockId>(options.num_blocks),
                          .cache = decoder->cache_.at(),
                          .layer_bytes = decoder->layer_bytes(),
                          .states = decoder->states_.at()});
  if (!runner.ok()) return runner.status();
  decoder->runner_ = std::move(*runner);
  // Reserved once: graphs are lost when workspaces move.
  if (options.cache_states) PACE_RETURN_IF_ERROR(decoder->runner_->Reserve(kCachedAtOnce));
  return decoder;
}

Result<std::shared_ptr<CudaWeights>> CudaDecoder::AllocateWeights() const {
  auto prepared = std::make_shared<CudaWeights>();
  PACE_ASSIGN_OR_RETURN(prepared->memory, DeviceMemory::Allocate(layout_.num_bytes(), "weights"));
  return prepared;
}

Result<std::shared_ptr<const DecoderWeights>> CudaDecoder::Prepare(const WeightSet& weights) const {
  if (weights.residence() == Residence::kDevice) {
    auto as_they_are = std::make_shared<CudaWeights>();
    as_they_are->on_device = weights;
    return std::shared_ptr<const DecoderWeights>(std::move(as_they_are));
  }
  PACE_ASSIGN_OR_RETURN(const std::shared_ptr<CudaWeights> prepared, AllocateWeights());
  PACE_RETURN_IF_ERROR(layout_.Upload(weights, prepared->memory.at()));
  return std::shared_ptr<const DecoderWeights>(prepared);
}

Result<std::shared_ptr<const DecoderWeights>> CudaDecoder::PrepareRandom(uint64_t seed,
                                                                         double deviation) const {
  PACE_ASSIGN_OR_RETURN(const std::shared_ptr<CudaWeights> prepared, AllocateWeights());
  PACE_RETURN_IF_ERROR(layout_.FillRandom(seed, deviation, prepared->memory.at()));
  return std::shared_ptr<const DecoderWeights>(prepared);
}

void CudaDecoder::Install(std::shared_ptr<const DecoderWeights> weights) {
  const auto prepared = std::dynamic_pointer_cast<const CudaWeights>(std::move(weights));
  PACE_CHECK(prepared != nullptr, "weights that a decoder of this config prepared");
  DropSpeculative();
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
  installed_ = ToStatus(error, "weights");
  is_installed_ = true;
}

Result<PassResult> CudaDecoder::RunNow(const Pass& pass) {
  PACE_ASSIGN_OR_RETURN(const PassRunner::Ticket ticket, runner_->Start(pass));
  return runner_->Finish(ticket);
}

Result<PassResult> CudaDecoder::RunRemaining(const Pass& pass, std::span<const int32_t> found,
                                             PassRunner::Ticket ticket) {
  PACE_ASSIGN_OR_RETURN(const PassResult ahead, runner_->Finish(ticket));
  if (std::ranges::all_of(found, IsNone)) return RunNow(pass);
  const Pass rest = WithoutFound(pass, found);
  if (rest.tokens.empty()) return JoinFound(pass, found, ahead.samples, {});
  PACE_ASSIGN_OR_RETURN(const PassResult others, RunNow(rest));
  return JoinFound(pass, found, ahead.samples, others);
}

// A device that cannot begin it will say so when it is asked for a pass.
std::optional<PassRunner::Ticket> CudaDecoder::Begin(const SpeculativePass& next,
                                                     std::span<const int32_t> sources) {
  if (next.empty() || !PassRunner::IsSmall(std::ssize(next.pass().tokens))) return std::nullopt;
  const Result<PassRunner::Ticket> ticket = runner_->Start(next.pass(), sources);
  return ticket.ok() ? std::optional(*ticket) : std::nullopt;
}

Result<PassResult> CudaDecoder::Run(const Pass& pass) {
  PACE_CHECK(is_installed_, "Install first");
  CheckPass(pass, config_, num_blocks_);
  if (pass.tokens.empty()) return PassResult{};
  PACE_RETURN_IF_ERROR(installed_);
  PACE_RETURN_IF_ERROR(std::exchange(status_, Status::Ok()));
  const InFlight running = std::exchange(speculative_, {});
  const std::vector<int32_t> found = running.pass.Find(pass);
  InFlight next = {.pass = SpeculativePass(pass), .ticket = std::nullopt};
  // If all of the pass is already in flight, its successor is queued before we wait.
  if (running.ticket && runner_->IsLast(*running.ticket) && std::ranges::none_of(found, IsNone)) {
    std::vector<int32_t> sources;
    for (const int32_t chunk : next.pass.sources()) {
      sources.push_back(found[static_cast<size_t>(chunk)]);
    }
    next.ticket = Begin(next.pass, sources);
  }
  Result<PassResult> result =
      running.ticket ? RunRemaining(pass, found, *running.ticket) : RunNow(pass);
  if (result.ok()) {
    next.pass.SetTokens(result->samples, config_.eos);
    if (!next.ticket) next.ticket = Begin(next.pass, {});
  }
  speculative_ = std::move(next);
  if (!result.ok()) DropSpeculative();
  return result;
}

void CudaDecoder::DropSpeculative() {
  const InFlight running = std::exchange(speculative_, {});
  if (!running.ticket) return;
  const Status status = runner_->Finish(*running.ticket).status();
  if (status_.ok()) status_ = status;
}

void CudaDecoder::WaitForSpeculation() {
  if (speculative_.ticket && status_.ok()) status_ = runner_->Wait(*speculative_.ticket);
}

Result<std::vector<float>> CudaDecoder::RunCached(std::span<const ScoreRequest> scores) {
  PACE_CHECK(is_installed_ && states_.at() != nullptr, "no hidden states are cached");
  PACE_RETURN_IF_ERROR(installed_);
  PACE_RETURN_IF_ERROR(std::exchange(status_, Status::Ok()));
  CheckCached(scores, config_, num_blocks_);
  std::vector<float> logprobs;
  for (size_t begin = 0; begin < scores.size(); begin += kCachedAtOnce) {
    const std::span<const ScoreRequest> some =
        scores.subspan(begin, std::min<size_t>(kCachedAtOnce, scores.size() - begin));
    PACE_ASSIGN_OR_RETURN(const PassRunner::Ticket ticket, runner_->StartCached(some));
    PACE_ASSIGN_OR_RETURN(const PassResult result, runner_->Finish(ticket));
    logprobs.insert(logprobs.end(), result.logprobs.begin(), result.logprobs.end());
  }
  return logprobs;
}

Result<ProfiledPass> CudaDecoder::RunForProfile(const Pass& pass) {
  DropSpeculative();
  // Loads kernels, too.
  PACE_RETURN_IF_ERROR(RunNow(pass).status());
  int64_t num_context_tokens = 0;
  double num_pairs = 0;
  for (const Chunk& chunk : pass.chunks) {
    num_context_tokens += chunk.start + chunk.num_tokens;
    num_pairs +=
        static_cast<double>(chunk.num_tokens) *
        (static_cast<double>(chunk.start) + 0.5 * static_cast<double>(chunk.num_tokens + 1));
  }
  return ProfiledPass{.config = config_,
                      .network = network_,
                      .metadata = runner_->metadata(),
                      .cache = cache_.at(),
                      .layer_bytes = layer_bytes(),
                      .num_context_tokens = num_context_tokens,
                      .num_pairs = num_pairs,
                      .num_rows = std::ssize(pass.tokens),
                      .element = element_};
}

Result<std::vector<DecodePart>> CudaDecoder::Profile(const Pass& pass) {
  PACE_ASSIGN_OR_RETURN(const ProfiledPass profiled, RunForProfile(pass));
  return ProfilePass(profiled, runner_->ops(), stream_);
}

Result<int64_t> CudaDecoder::CountExperts(const Pass& pass) {
  PACE_CHECK(config_.moe.has_value() && IsDecodeOnly(pass), "a decode pass with experts");
  PACE_ASSIGN_OR_RETURN(const ProfiledPass profiled, RunForProfile(pass));
  return cuda::CountExperts(profiled, runner_->ops(), stream_);
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
  // Copies of one launch run concurrently, so a copy that touches an earlier target goes into
  // the next launch.
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
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<cuda::CudaDecoder> decoder,
                        cuda::CudaDecoder::Create(config, options));
  return std::unique_ptr<Decoder>(std::move(decoder));
}

Result<std::shared_ptr<const DecoderWeights>> RandomCudaWeights(const Decoder& decoder,
                                                                uint64_t seed, double deviation) {
  const auto* const ours = dynamic_cast<const cuda::CudaDecoder*>(&decoder);
  PACE_CHECK(ours != nullptr, "a decoder of CreateCudaDecoder");
  return ours->PrepareRandom(seed, deviation);
}

Result<std::vector<DecodePart>> ProfileCudaPass(Decoder& decoder, const Pass& pass) {
  auto* const ours = dynamic_cast<cuda::CudaDecoder*>(&decoder);
  PACE_CHECK(ours != nullptr, "a decoder of CreateCudaDecoder");
  return ours->Profile(pass);
}

Result<int64_t> CountCudaExperts(Decoder& decoder, const Pass& pass) {
  auto* const ours = dynamic_cast<cuda::CudaDecoder*>(&decoder);
  PACE_CHECK(ours != nullptr, "a decoder of CreateCudaDecoder");
  return ours->CountExperts(pass);
}

}  // namespace pace
