// `pace bench decode`: decoding speed of one device, against the limit that reading weights
// and cache once per token sets, and beside `transformers` and compiled PyTorch.
//
// Random weights in bf16, every sequence at the same context, sampling at temperature 1. A
// token's time is wall-clock time, host work included.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_model.h"
#include "bench/benches.h"
#include "bench/machine.h"
#include "bench/peer.h"
#include "core/clock.h"
#include "core/random.h"
#include "core/status.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/decoder.h"
#include "model/devices.h"
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

// Sequences with contexts of equal length, decoded token by token.
class DecodeLoop {
 public:
  // Random weights; KV cache for max_batch sequences of max_tokens.
  static Result<std::unique_ptr<DecodeLoop>> Create(const ModelConfig& config, DeviceKind device,
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

  // Fills the cache of the first `batch` sequences; seconds.
  Result<double> Prefill(int64_t batch, int64_t context) {
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

  // Decodes new_tokens after the context; every call starts from there. Seconds.
  Result<double> Decode(int64_t batch, int64_t context, int64_t new_tokens) {
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

  // The parts of one such forward pass, each alone. REQUIRES: on a GPU
  Result<std::vector<DecodePart>> Profile(int64_t batch, int64_t context) {
    return ProfileCudaDecode(*decoder_, MakePass(batch, context));
  }

  // Seconds that installing the weights once more takes.
  double Install() {
    const WallClock clock;
    decoder_->Install(weights_);
    return clock.Now().count();
  }

 private:
  DecodeLoop() = default;
  // One new token of each sequence, after its context.
  Pass MakePass(int64_t batch, int64_t context) const {
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

  std::unique_ptr<Decoder> decoder_;
  std::shared_ptr<const DecoderWeights> weights_;
  std::vector<std::vector<BlockId>> blocks_;  // of each sequence
};

constexpr int64_t kNewTokens = 64;
// Fewer tokens for the peer, which is slow.
constexpr int64_t kPeerTokens = 16;

// Tokens per second that this project asks of itself on an H200.
std::optional<double> RequiredSpeed(const std::string& shape, int64_t batch, DeviceKind device) {
  if (device != DeviceKind::kCuda) return std::nullopt;
  if (shape == "qwen3-4b" && batch == 1) return 0.5 * 535;
  if (shape == "qwen3-4b" && batch == 128) return 6000;
  return std::nullopt;
}

std::optional<double> RequiredShare(const std::string& shape, int64_t batch, DeviceKind device) {
  if (device != DeviceKind::kCuda || batch != 1) return std::nullopt;
  if (shape == "qwen3-4b") return 0.5;
  return shape == "qwen3-0.6b" ? std::optional<double>(0.25) : std::nullopt;
}

std::string PeerConfig(const ModelConfig& config, const BenchOptions& options) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  json.Put("what", "decode");
  json.Put("device", DeviceName(options.device));
  json.Put("threads", options.num_threads);
  json.Key("config");
  WritePeerConfig(config, json);
  json.EndObject();
  return text;
}

class DecodeBench {
 public:
  explicit DecodeBench(const BenchOptions& options) : options_(options) {
    if (!options_.shapes.empty()) return;
    const bool is_cpu = options_.device == DeviceKind::kCpu;
    options_.shapes = is_cpu ? std::vector<std::string>{"tiny"}
                             : std::vector<std::string>{"qwen3-4b", "qwen3-0.6b"};
  }

  Status Run() {
    if (options_.device == DeviceKind::kCuda) {
      PACE_ASSIGN_OR_RETURN(device_, FindCudaDevice());
      PACE_ASSIGN_OR_RETURN(const double bandwidth, MeasureCudaBandwidth());
      bandwidth_ = bandwidth;
    }
    if (options_.python) peer_ = Peer::Start("decode_peer.py");
    for (const std::string& shape : options_.shapes) {
      PACE_ASSIGN_OR_RETURN(const ModelConfig config, NamedShape(shape));
      PACE_RETURN_IF_ERROR(MeasureOurs(shape, config));
      if (peer_.ok()) {
        const Status status = MeasurePeer(shape, config, *peer_, {"transformers", kPeerTokens});
        version_ = peer_->version();
        if (!status.ok()) peer_ = status;
      }
      if (device_ && options_.python) MeasureCompiled(shape, config);
    }
    return Status::Ok();
  }

  void Report(BenchReport& report) const {
    report.measurements = measurements_;
    JsonWriter& settings = report.settings();
    settings.Put("device", DeviceName(options_.device));
    settings.Put("repetitions", options_.repetitions);
    settings.Put("context", options_.context);
    settings.Put("new_tokens", kNewTokens);
    settings.Put("peer_new_tokens", kPeerTokens);
    report.more().Put("command", Command());
    report.more().Put("peer", version_.empty() ? peer_.status().message() : version_);
    if (!device_) return;
    report.more().Put("compiled_peer", compiled_peer_);
    WriteGpu(*device_, {{"bandwidth_bytes_per_s", bandwidth_}}, report.more());
    report.PutProfiles(profiles_);
  }

 private:
  Status MeasureOurs(const std::string& shape, const ModelConfig& config) {
    const int64_t largest = *std::max_element(options_.batches.begin(), options_.batches.end());
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<DecodeLoop> loop,
                          DecodeLoop::Create(config, options_.device, options_.num_threads, largest,
                                             options_.context + kNewTokens));
    Measurement prefill = Rate(shape + "_prefill", "tokens/s");
    Measurement install = Rate(shape + "_install", "ms");
    for (int64_t round = 0; round <= options_.repetitions; ++round) {
      PACE_ASSIGN_OR_RETURN(const double seconds, loop->Prefill(largest, options_.context));
      const double installed = loop->Install();
      if (round == 0) continue;
      prefill.Add(static_cast<double>(largest * options_.context) / seconds);
      install.Add(1e3 * installed);
    }
    for (const int64_t batch : options_.batches) {
      PACE_RETURN_IF_ERROR(MeasureBatch(shape, config, batch, *loop));
    }
    measurements_.push_back(std::move(prefill));
    measurements_.push_back(std::move(install));
    return Status::Ok();
  }

  Status MeasureBatch(const std::string& shape, const ModelConfig& config, int64_t batch,
                      DecodeLoop& loop) {
    const std::string name = Concat(shape, "_batch_", batch);
    Measurement speed = Rate(name, "tokens/s", RequiredSpeed(shape, batch, options_.device));
    Measurement share =
        Rate(name + "_share_of_bandwidth", "ratio", RequiredShare(shape, batch, options_.device));
    for (int64_t round = 0; round <= options_.repetitions; ++round) {
      PACE_ASSIGN_OR_RETURN(const double seconds, loop.Decode(batch, options_.context, kNewTokens));
      if (round == 0) continue;  // captures the graph
      const double per_step = seconds / static_cast<double>(kNewTokens);
      speed.Add(static_cast<double>(batch) / per_step);
      share.Add(StepBytes(config, batch) / per_step / bandwidth_);
    }
    if (device_) {
      PACE_ASSIGN_OR_RETURN(const std::vector<DecodePart> parts,
                            loop.Profile(batch, options_.context));
      StepProfile profile{
          .shape = name, .step_seconds = static_cast<double>(batch) / speed.Median(), .parts = {}};
      for (const DecodePart& part : parts) {
        profile.parts.push_back(
            {part.name, part.seconds, static_cast<double>(part.num_bytes) / bandwidth_});
      }
      profiles_.push_back(std::move(profile));
    }
    measurements_.push_back(std::move(speed));
    if (device_) measurements_.push_back(std::move(share));
    return Status::Ok();
  }

  // Weights once, and the keys and values of every sequence.
  double StepBytes(const ModelConfig& config, int64_t batch) const {
    const int64_t context = options_.context + kNewTokens / 2;
    const int64_t kv = batch * context * config.num_layers * 2 * config.kv_size();
    return 2.0 * static_cast<double>(config.num_parameters() + kv);
  }

  struct PeerRun {
    std::string name;
    int64_t num_tokens = 0;
  };
  Status MeasurePeer(const std::string& shape, const ModelConfig& config, Peer& peer,
                     const PeerRun& run) {
    PACE_RETURN_IF_ERROR(peer.Ask(PeerConfig(config, options_)).status());
    for (const int64_t batch : options_.batches) {
      const std::string name = Concat(shape, "_batch_", batch);
      Measurement speed = Rate(Concat(name, "_", run.name), "tokens/s");
      for (int64_t round = 0; round <= options_.repetitions; ++round) {
        PACE_ASSIGN_OR_RETURN(
            const PeerAnswer answer,
            peer.Ask(Concat("{\"batch\": ", batch, ", \"context\": ", options_.context,
                            ", \"new_tokens\": ", run.num_tokens, "}"),
                     {"seconds"}));
        if (round == 0) continue;  // loads, compiles, captures
        speed.Add(static_cast<double>(batch * run.num_tokens) / answer.numbers.at("seconds"));
      }
      const auto ours = std::ranges::find(measurements_, name, &Measurement::name);
      measurements_.push_back(RatioOf(*ours, speed, Concat(name, "_times_", run.name)));
      measurements_.push_back(std::move(speed));
    }
    return Status::Ok();
  }

  // A process for each shape, so that its memory is given back.
  void MeasureCompiled(const std::string& shape, const ModelConfig& config) {
    Result<Peer> peer = Peer::Start("compiled_peer.py");
    if (peer.ok()) {
      const Status status = MeasurePeer(shape, config, *peer, {"compiled", kNewTokens});
      if (!status.ok()) {
        compiled_peer_ = status.message();
        return;
      }
    }
    compiled_peer_ = DescriptionOf(peer);
  }

  std::string Command() const {
    std::string command =
        Concat("pace bench decode --device ", DeviceName(options_.device), " --repetitions ",
               options_.repetitions, " --context ", options_.context, " --shape");
    for (const std::string& shape : options_.shapes) command += " " + shape;
    command += " --batch";
    for (const int64_t batch : options_.batches) command += Concat(" ", batch);
    if (!options_.python) command += " --no-python";
    return command;
  }

  BenchOptions options_;
  std::optional<CudaDevice> device_;
  double bandwidth_ = 1;
  Result<Peer> peer_ = Unavailable("not asked for");
  std::string version_;
  std::string compiled_peer_ = "not asked for";
  std::vector<Measurement> measurements_;
  std::vector<StepProfile> profiles_;
};

}  // namespace

Status RunDecodeBench(const BenchOptions& options, BenchReport& report) {
  PACE_RETURN_IF_ERROR(options.Validate());
  DecodeBench bench(options);
  PACE_RETURN_IF_ERROR(bench.Run());
  bench.Report(report);
  return Status::Ok();
}

}  // namespace pace
