// `pace bench decode`: decoding speed of one device, against the limit that reading weights
// and cache once per token sets, and beside `transformers` and compiled PyTorch.
//
// Random weights in bf16, every sequence at the same context, sampling at temperature 1. A
// token's time is wall-clock time, host work included. Of a mixture the limit counts the experts
// that the measured steps select; it has no peer. On a GPU prefill is held against the speed of a
// large product, and a re-prefill with prefix scores (bench/reprefill.h) against prefill. With
// --fp8 the same follows with the layers' weights in eight bits, against their own limit.
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
#include "bench/reprefill.h"
#include "core/clock.h"
#include "core/random.h"
#include "core/status.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/decoder.h"
#include "model/devices.h"
#include "model/quantization.h"
#include "model/weight_set.h"

namespace pace {
namespace {

constexpr uint64_t kDecodeSeed = 20261115;
constexpr double kDeviation = 0.02;
// Rows of a prefill's pass, and of a re-prefill's.
constexpr int64_t kDecodePassTokens = 8192;
// Tokens of a prefill that is timed, and of the contexts that are computed before decoding; the
// cache of further sequences is a copy.
constexpr int64_t kTimedTokens = int64_t{1} << 17;
constexpr int64_t kComputedTokens = int64_t{1} << 18;

Result<std::shared_ptr<const DecoderWeights>> RandomPrepared(const Decoder& decoder,
                                                             DeviceKind device) {
  if (device == DeviceKind::kCuda) return RandomCudaWeights(decoder, kDecodeSeed, kDeviation);
  return decoder.Prepare(RandomWeights(decoder.config(), kDecodeSeed, kDeviation));
}

// Sequences with contexts of equal length, decoded token by token.
class DecodeLoop {
 public:
  // Random weights; KV cache for max_batch sequences of max_tokens.
  static Result<std::unique_ptr<DecodeLoop>> Create(const ModelConfig& config,
                                                    Quantization quantization, DeviceKind device,
                                                    int64_t num_threads, int64_t max_batch,
                                                    int64_t max_tokens) {
    const int64_t blocks_each = (max_tokens + kBlockTokens - 1) / kBlockTokens;
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder,
                          CreateDecoder(device, config,
                                        {.dtype = Dtype::kBF16,
                                         .quantization = quantization,
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

  // Sequences whose contexts one pass computes.
  static int64_t PrefillAtOnce(int64_t batch, int64_t context) {
    return std::clamp<int64_t>(kDecodePassTokens / context, 1, batch);
  }

  // Fills the cache of the first `batch` sequences; seconds.
  Result<double> Prefill(int64_t batch, int64_t context) {
    const int64_t at_once = PrefillAtOnce(batch, context);
    const WallClock clock;
    for (int64_t first = 0; first < batch; first += at_once) {
      const Pass pass = MakePrefill(first, std::min(batch, first + at_once), context);
      PACE_RETURN_IF_ERROR(decoder_->Run(pass).status());
    }
    return clock.Now().count();
  }

  // Gives all sequences a context.
  Status Fill(int64_t context) {
    const auto all = std::ssize(blocks_);
    const int64_t computed = std::clamp<int64_t>(kComputedTokens / context, 1, all);
    PACE_RETURN_IF_ERROR(Prefill(computed, context).status());
    for (int64_t s = computed; s < all; ++s) {
      const std::vector<BlockId>& from = blocks_[static_cast<size_t>(s % computed)];
      const std::vector<BlockId>& to = blocks_[static_cast<size_t>(s)];
      std::vector<BlockCopy> copies;
      for (size_t b = 0; b < from.size(); ++b) copies.push_back({.from = from[b], .to = to[b]});
      decoder_->CopyBlocks(copies);
    }
    return Status::Ok();
  }

  // Decodes new_tokens after the context; every call starts from there. Seconds.
  Result<double> Decode(int64_t batch, int64_t context, int64_t new_tokens) {
    Pass pass = MakePass(batch, context);
    const WallClock clock;
    for (int64_t token = 0; token < new_tokens; ++token) {
      PACE_RETURN_IF_ERROR(Advance(pass));
    }
    const double seconds = clock.Now().count();
    last_tokens_ = pass.tokens;
    return seconds;
  }

  // The parts of one such forward pass, each alone. REQUIRES: on a GPU; Decode of this batch was
  // the last call of Decode
  Result<std::vector<DecodePart>> Profile(int64_t batch, int64_t context) {
    Pass pass = MakePass(batch, context);
    pass.tokens = last_tokens_;
    return ProfileCudaPass(*decoder_, pass);
  }

  // Times each part of a prefill pass over `num_sequences` sequences; overwrites their cache.
  // REQUIRES: on a GPU
  Result<std::vector<DecodePart>> ProfilePrefill(int64_t num_sequences, int64_t context) {
    return ProfileCudaPass(*decoder_, MakePrefill(0, num_sequences, context));
  }

  // The experts that a step of Decode selects, summed over the layers: the mean over every
  // kCountedStep-th step. REQUIRES: on a GPU; a mixture of experts
  Result<double> MeanExperts(int64_t batch, int64_t context, int64_t new_tokens) {
    constexpr int64_t kCountedStep = 8;
    Pass pass = MakePass(batch, context);
    int64_t sum = 0;
    int64_t num_counted = 0;
    for (int64_t token = 0; token < new_tokens; ++token) {
      if (token % kCountedStep == 0) {
        PACE_ASSIGN_OR_RETURN(const int64_t experts, CountCudaExperts(*decoder_, pass));
        sum += experts;
        ++num_counted;
      }
      PACE_RETURN_IF_ERROR(Advance(pass));
    }
    return static_cast<double>(sum) / static_cast<double>(num_counted);
  }

  // Seconds that installing the weights once more takes.
  double Install() {
    const WallClock clock;
    decoder_->Install(weights_);
    return clock.Now().count();
  }

 private:
  DecodeLoop() = default;
  // Runs a decode pass, which becomes the next one.
  Status Advance(Pass& pass) {
    PACE_ASSIGN_OR_RETURN(const PassResult result, decoder_->Run(pass));
    for (size_t s = 0; s < pass.tokens.size(); ++s) {
      pass.tokens[s] = result.samples[s].token;
      ++pass.chunks[s].start;
      ++pass.samples[s].key.token;
    }
    return Status::Ok();
  }
  // The contexts of sequences [begin, end).
  Pass MakePrefill(int64_t begin, int64_t end, int64_t context) const {
    const CounterRandom random(kDecodeSeed, 1);
    const auto vocab_size = static_cast<double>(decoder_->config().vocab_size);
    Pass pass;
    for (int64_t s = begin; s < end; ++s) {
      for (int64_t i = 0; i < context; ++i) {
        const double u = random.Uniform(static_cast<uint64_t>(s), static_cast<uint64_t>(i));
        pass.tokens.push_back(static_cast<TokenId>(u * vocab_size));
      }
      pass.chunks.push_back(
          {.start = 0, .num_tokens = context, .blocks = blocks_[static_cast<size_t>(s)]});
    }
    return pass;
  }
  // One new token of each sequence, after its context.
  Pass MakePass(int64_t batch, int64_t context) const {
    Pass pass;
    pass.tokens.assign(static_cast<size_t>(batch), 1);
    for (int64_t s = 0; s < batch; ++s) {
      pass.chunks.push_back(
          {.start = context, .num_tokens = 1, .blocks = blocks_[static_cast<size_t>(s)]});
      pass.samples.push_back(
          {.row = s,
           .options = {.temperature = 1.0},
           .key = {.seed = kDecodeSeed, .prompt = s, .response = 0, .token = 0}});
    }
    return pass;
  }

  std::unique_ptr<Decoder> decoder_;
  std::shared_ptr<const DecoderWeights> weights_;
  std::vector<std::vector<BlockId>> blocks_;  // of each sequence
  std::vector<TokenId> last_tokens_;          // that Decode sampled
};

constexpr int64_t kDecodeTokens = 64;
// Fewer tokens for the peer, which is slow.
constexpr int64_t kPeerTokens = 16;

// Tokens per second that this project asks of itself on an H200.
std::optional<double> RequiredSpeed(const std::string& shape, int64_t batch, DeviceKind device) {
  if (device != DeviceKind::kCuda) return std::nullopt;
  if (shape == "qwen3-4b" && batch == 1) return 0.5 * 535;
  if (shape == "qwen3-4b" && batch == 128) return 6000;
  return std::nullopt;
}

std::optional<double> RequiredShare(const std::string& shape, int64_t batch,
                                    const BenchOptions& options) {
  if (options.device != DeviceKind::kCuda) return std::nullopt;
  if (shape == "qwen3-30b-a3b") {
    if (batch == 1) return 0.45;
    return batch == 64 ? std::optional<double>(0.5) : std::nullopt;
  }
  if (batch * options.context >= kComputedTokens) return 0.75;
  if (batch != 1) return std::nullopt;
  if (shape == "qwen3-4b") return 0.78;
  return shape == "qwen3-0.6b" ? std::optional<double>(0.45) : std::nullopt;
}

// Of the speed of a large product, and of the time of a prefill.
constexpr double kPrefillShare = 0.65;
constexpr double kReprefillOverPrefill = 1.1;

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
      PACE_ASSIGN_OR_RETURN(const double products, MeasureCudaProducts());
      bandwidth_ = bandwidth;
      products_ = products;
    }
    if (options_.python) peer_ = Peer::Start("decode_peer.py");
    for (const std::string& shape : options_.shapes) {
      PACE_ASSIGN_OR_RETURN(const ModelConfig config, NamedShape(shape));
      PACE_RETURN_IF_ERROR(MeasureOurs(shape, config, Quantization::kNone));
      if (options_.quantized) {
        PACE_RETURN_IF_ERROR(MeasureOurs(shape, config, Quantization::kFloat8));
      }
      if (options_.num_reprefilled > 0) PACE_RETURN_IF_ERROR(MeasureScores(shape, config));
      if (config.moe) continue;
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
    settings.Put("reprefilled_responses", options_.num_reprefilled);
    settings.Put("pass_tokens", kDecodePassTokens);
    settings.Put("new_tokens", kDecodeTokens);
    settings.Put("peer_new_tokens", kPeerTokens);
    report.more().Put("command", Command());
    report.more().Put("peer", version_.empty() ? peer_.status().message() : version_);
    if (!device_) return;
    report.more().Put("compiled_peer", compiled_peer_);
    WriteGpu(*device_, {{"bandwidth_bytes_per_s", bandwidth_}, {"gemm_flops_per_s", products_}},
             report.more());
    report.PutProfiles(profiles_);
  }

 private:
  static std::string Suffix(Quantization quantization) {
    return quantization == Quantization::kFloat8 ? "_fp8" : "";
  }

  Status MeasureOurs(const std::string& shape, const ModelConfig& config,
                     Quantization quantization) {
    const int64_t largest = *std::max_element(options_.batches.begin(), options_.batches.end());
    PACE_ASSIGN_OR_RETURN(
        std::unique_ptr<DecodeLoop> loop,
        DecodeLoop::Create(config, quantization, options_.device, options_.num_threads, largest,
                           options_.context + kDecodeTokens));
    PACE_RETURN_IF_ERROR(loop->Fill(options_.context));
    const std::string suffix = Suffix(quantization);
    const bool is_plain = quantization == Quantization::kNone;
    Measurement prefill = Rate(shape + "_prefill" + suffix, "tokens/s");
    Measurement share = Rate(shape + "_prefill_share_of_products" + suffix, "ratio",
                             is_plain ? RequiredPrefill(shape) : std::nullopt);
    Measurement install = Rate(shape + "_install" + suffix, "ms");
    const int64_t timed = std::clamp<int64_t>(kTimedTokens / options_.context, 1, largest);
    const double flops = LayerFlops(config, 0.5 * static_cast<double>(options_.context - 1));
    for (int64_t round = 0; round < options_.repetitions; ++round) {
      PACE_ASSIGN_OR_RETURN(const double seconds, loop->Prefill(timed, options_.context));
      install.Add(1e3 * loop->Install());
      prefill.Add(static_cast<double>(timed * options_.context) / seconds);
      share.Add(prefill.repetitions.back() * flops / products_);
    }
    for (const int64_t batch : options_.batches) {
      PACE_RETURN_IF_ERROR(MeasureBatch(shape, config, quantization, batch, *loop));
    }
    if (device_) {
      const int64_t at_once = DecodeLoop::PrefillAtOnce(timed, options_.context);
      PACE_ASSIGN_OR_RETURN(const std::vector<DecodePart> parts,
                            loop->ProfilePrefill(at_once, options_.context));
      const auto num_tokens = static_cast<double>(at_once * options_.context);
      AddProfile(prefill.name, num_tokens / prefill.Median(), parts);
    }
    measurements_.push_back(std::move(prefill));
    if (device_) measurements_.push_back(std::move(share));
    measurements_.push_back(std::move(install));
    return Status::Ok();
  }

  // Prefix scores of unfinished responses after a sync; the prefill of the same tokens was
  // measured before.
  Status MeasureScores(const std::string& shape, const ModelConfig& config) {
    const ReprefillOptions options{.num_responses = options_.num_reprefilled,
                                   .num_tokens = options_.context,
                                   .pass_tokens = kDecodePassTokens,
                                   .repetitions = options_.repetitions};
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder,
                          CreateDecoder(options_.device, config,
                                        {.dtype = Dtype::kBF16,
                                         .num_blocks = ReprefillBlocks(options),
                                         .num_threads = options_.num_threads,
                                         .cache_states = true}));
    PACE_ASSIGN_OR_RETURN(std::shared_ptr<const DecoderWeights> weights,
                          RandomPrepared(*decoder, options_.device));
    PACE_ASSIGN_OR_RETURN(const std::vector<ReprefillCost> costs,
                          MeasureReprefill(std::move(decoder), std::move(weights), options));
    const auto prefill = std::ranges::find(measurements_, shape + "_prefill", &Measurement::name);
    Measurement speed = Rate(shape + "_reprefill", "tokens/s");
    Measurement scoring{.name = shape + "_scoring_share", .unit = "ratio"};
    Measurement over{.name = shape + "_reprefill_over_prefill", .unit = "ratio"};
    if (RequiredPrefill(shape)) over.limit = kReprefillOverPrefill;
    for (const ReprefillCost& cost : costs) {
      speed.Add(static_cast<double>(cost.num_rows) / cost.seconds);
      scoring.Add(cost.scoring_seconds / cost.seconds);
      over.Add(prefill->Median() / speed.repetitions.back());
    }
    for (Measurement* const one : {&speed, &scoring, &over}) {
      measurements_.push_back(std::move(*one));
    }
    return Status::Ok();
  }
  void AddProfile(const std::string& name, double seconds, const std::vector<DecodePart>& parts) {
    StepProfile profile{.shape = name, .step_seconds = seconds, .parts = {}};
    for (const DecodePart& part : parts) {
      const double limit =
          std::max(static_cast<double>(part.num_bytes) / bandwidth_, part.num_flops / products_);
      profile.parts.push_back({part.name, part.seconds, limit});
    }
    profiles_.push_back(std::move(profile));
  }
  std::optional<double> RequiredPrefill(const std::string& shape) const {
    const bool is_asked =
        options_.device == DeviceKind::kCuda && shape == "qwen3-4b" && options_.context >= 2048;
    return is_asked ? std::optional<double>(kPrefillShare) : std::nullopt;
  }

  Status MeasureBatch(const std::string& shape, const ModelConfig& config,
                      Quantization quantization, int64_t batch, DecodeLoop& loop) {
    const bool is_plain = quantization == Quantization::kNone;
    const std::string plain_name = Concat(shape, "_batch_", batch);
    const std::string name = plain_name + Suffix(quantization);
    Measurement speed = Rate(name, "tokens/s");
    Measurement share = Rate(name + "_share_of_bandwidth", "ratio");
    if (is_plain) {
      speed.limit = RequiredSpeed(shape, batch, options_.device);
      share.limit = RequiredShare(shape, batch, options_);
    }
    double experts = 0;
    if (device_ && config.moe) {
      PACE_ASSIGN_OR_RETURN(experts, loop.MeanExperts(batch, options_.context, kDecodeTokens));
      measurements_.push_back(Known(name + "_experts", "experts", experts));
    }
    const int64_t middle = options_.context + kDecodeTokens / 2;
    const auto context = static_cast<double>(middle);
    const double num_bytes = StepBytes(config, batch, context, experts, is_plain ? 2 : 1);
    for (int64_t round = 0; round <= options_.repetitions; ++round) {
      PACE_ASSIGN_OR_RETURN(const double seconds,
                            loop.Decode(batch, options_.context, kDecodeTokens));
      if (round == 0) continue;  // captures the graph
      const double per_step = seconds / static_cast<double>(kDecodeTokens);
      speed.Add(static_cast<double>(batch) / per_step);
      share.Add(num_bytes / per_step / bandwidth_);
    }
    if (device_) {
      PACE_ASSIGN_OR_RETURN(const std::vector<DecodePart> parts,
                            loop.Profile(batch, options_.context));
      AddProfile(name, static_cast<double>(batch) / speed.Median(), parts);
    }
    if (!is_plain) {
      const auto plain = std::ranges::find(measurements_, plain_name, &Measurement::name);
      measurements_.push_back(RatioOf(speed, *plain, name + "_times_bf16"));
    }
    measurements_.push_back(std::move(speed));
    if (device_) measurements_.push_back(std::move(share));
    return Status::Ok();
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
      const Status status = MeasurePeer(shape, config, *peer, {"compiled", kDecodeTokens});
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
    if (options_.num_reprefilled > 0) command += Concat(" --reprefill ", options_.num_reprefilled);
    if (options_.quantized) command += " --fp8";
    if (!options_.python) command += " --no-python";
    return command;
  }

  BenchOptions options_;
  std::optional<CudaDevice> device_;
  double bandwidth_ = 1;
  double products_ = 1;  // operations per second
  Result<Peer> peer_ = Unavailable("not asked for");
  std::string version_;
  std::string compiled_peer_ = "not asked for";
  std::vector<Measurement> measurements_;
  std::vector<StepProfile> profiles_;
};

}  // namespace

Status RunDecodeBench(const BenchOptions& options, BenchReport& report) {
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_RETURN_IF_ERROR(CheckShapes(options.shapes));
  DecodeBench bench(options);
  PACE_RETURN_IF_ERROR(bench.Run());
  bench.Report(report);
  return Status::Ok();
}

}  // namespace pace
