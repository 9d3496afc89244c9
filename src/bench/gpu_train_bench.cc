// `pace bench train --device cuda`: training speed on a GPU, beside `transformers`, compiled
// PyTorch and the GPU's own limits.
//
// Random weights of a shape, float32 masters and moments, bf16 computation, layers
// recomputed in the backward pass; whole steps of a Trainer, on sequences of one length and on
// lengths as rollouts have them. Training may hold as much memory as the compiled peer held. The
// weights and cache of a rollout engine share the device, as in a run, and receive the new
// weights after each step: the sync. Then the parts of a step one by one, each against its
// limit.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_model.h"
#include "bench/bench_report.h"
#include "bench/benches.h"
#include "bench/machine.h"
#include "bench/peer.h"
#include "bench/train_loop.h"
#include "core/random.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/cuda/train/training_functions.h"
#include "model/model_config.h"
#include "model/torch/row_functions.h"
#include "train/adamw.h"
#include "train/policy_scores.h"
#include "train/torch_trainer.h"

namespace pace {
namespace {

constexpr int64_t kNumSequences = 8;
constexpr int64_t kLength = 2048;                      // of each
constexpr int64_t kGpuTokenBudget = 16384;             // of one forward pass
constexpr int64_t kKvGib = 20;                         // KV cache of the engine on the same device
constexpr int64_t kMixedTokens = 4 * kGpuTokenBudget;  // of all sequences with mixed lengths
constexpr int64_t kMixedLength = 8192;                 // of the longest
constexpr double kMeanLength = 2048;
constexpr uint64_t kGpuSeed = 7;
// Of one part of a step.
constexpr int kRounds = 5;
constexpr int kRuns = 4;
constexpr int kBusyProducts = 5;  // some milliseconds
constexpr int64_t kGpuGemmSize = 8192;

at::Tensor Random(at::IntArrayRef sizes, at::ScalarType dtype = at::kBFloat16) {
  return at::randn(sizes, at::TensorOptions(at::kCUDA).dtype(dtype));
}

// The device's time of one run, the median. Work before it keeps the device busy while
// the host queues, so that waits for the host do not count.
double SecondsOf(const std::function<void()>& body) {
  body();
  const at::Tensor busy = Random({kGpuGemmSize, kGpuGemmSize});
  CudaStopwatch watch;
  std::vector<double> all;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kBusyProducts; ++i) at::mm(busy, busy);
    watch.Start();
    for (int i = 0; i < kRuns; ++i) body();
    all.push_back(watch.Stop() / kRuns);
  }
  std::ranges::sort(all);
  return all[all.size() / 2];
}

struct GpuLimits {
  double flops = 0;  // per second, of bf16 products
  double bytes = 0;  // per second, of copies
};

// The parts of a training step, each alone: one forward pass over the batch with layers
// recomputed, as if nothing was kept, and one update. How long each takes, and what the GPU's
// limits would allow.
class PartsOfAStep {
 public:
  PartsOfAStep(const ModelConfig& config, const GpuLimits& limits)
      : config_(config), limits_(limits) {}

  std::vector<StepProfile::Part> Measure() {
    MeasureProducts();
    MeasureAttention();
    MeasureRows();
    MeasureLogits();
    MeasureUpdate();
    return std::move(parts_);
  }

 private:
  // A product of m x k and k x n takes 2 m k n operations.
  static double Flops(int64_t m, int64_t k, int64_t n) {
    return 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  }
  void Add(const std::string& name, double times, double seconds, double limit) {
    for (StepProfile::Part& part : parts_) {
      if (part.name != name) continue;
      part.seconds += times * seconds;
      part.limit += times * limit;
      return;
    }
    parts_.push_back({name, times * seconds, times * limit});
  }
  double layers() const { return static_cast<double>(config_.num_layers); }

  // Forward twice, then both gradients, of each matrix of a layer.
  void MeasureProducts() {
    const int64_t h = config_.hidden_size;
    const int64_t heads = config_.num_heads * config_.head_dim;
    const int64_t kv = config_.num_kv_heads * config_.head_dim;
    const int64_t f = config_.intermediate_size;
    struct Shape {
      int64_t inputs, outputs;
    };
    for (const auto& [inputs, outputs] :
         {Shape{h, heads + 2 * kv}, Shape{heads, h}, Shape{h, 2 * f}, Shape{f, h}}) {
      const at::Tensor x = Random({rows_, inputs});
      const at::Tensor w = Random({outputs, inputs});
      const at::Tensor g = Random({rows_, outputs});
      const at::Tensor master = Random({outputs, inputs}, at::kFloat);
      const double limit = Flops(rows_, inputs, outputs) / limits_.flops;
      Add("products, forward (up to twice)", 2 * layers(), SecondsOf([&] { at::mm(x, w.t()); }),
          limit);
      Add("products, to activations", layers(), SecondsOf([&] { at::mm(g, w); }), limit);
      Add("products, to weights", layers(), SecondsOf([&] { at::mm(g.t(), x, at::kFloat); }),
          limit);
      const double bytes = 6.0 * static_cast<double>(inputs * outputs);
      Add("weights rounded (up to twice)", 2 * layers(),
          SecondsOf([&] { master.to(at::kBFloat16); }), bytes / limits_.bytes);
    }
  }

  void MeasureAttention() {
    const int64_t width = (config_.num_heads + 2 * config_.num_kv_heads) * config_.head_dim;
    const std::vector<int64_t> lengths(static_cast<size_t>(kNumSequences), kLength);
    const at::Tensor angles = Random({rows_, 1, config_.head_dim / 2}, at::kFloat);
    const auto sequences =
        c10::make_intrusive<CudaSequences>(config_, lengths, at::cos(angles), at::sin(angles));
    const at::Tensor norm = at::ones({config_.head_dim}, angles.options());
    const at::Tensor query_norm = config_.qk_norm ? norm : at::Tensor();
    const at::Tensor key_norm = config_.qk_norm ? norm.clone() : at::Tensor();
    const at::Tensor qkv = Random({rows_, width});
    const at::Tensor g = Random({rows_, config_.num_heads * config_.head_dim});
    // Half of all pairs; scores and values.
    const double pairs = 0.5 * static_cast<double>(rows_ * kLength);
    const double flops = 4.0 * pairs * static_cast<double>(config_.num_heads * config_.head_dim);
    const double forward = SecondsOf([&] { CudaAttend(qkv, query_norm, key_norm, sequences); });
    const double both = SecondsOf([&] {
      const at::Tensor x = qkv.detach().set_requires_grad(true);
      torch::autograd::backward({CudaAttend(x, query_norm, key_norm, sequences)}, {g});
    });
    Add("attention and rotary, forward (up to twice)", 2 * layers(), forward,
        flops / limits_.flops);
    Add("attention and rotary, backward", layers(), both - forward, 2.5 * flops / limits_.flops);
  }

  void MeasureRows() {
    const int64_t h = config_.hidden_size;
    const int64_t f = config_.intermediate_size;
    const at::Tensor x = Random({rows_, h});
    const at::Tensor weight = at::ones({h}, x.options().dtype(at::kFloat));
    const at::Tensor g = Random({rows_, h});
    const at::Tensor gate_up = Random({rows_, 2 * f});
    const at::Tensor gated = Random({rows_, f});
    const double row_bytes = 2.0 * static_cast<double>(rows_);
    const auto measure = [&](const std::string& name, double times, const auto& forward,
                             const at::Tensor& input, const at::Tensor& gradient, double read,
                             double written) {
      const double one = SecondsOf([&] { forward(input); });
      const double both = SecondsOf([&] {
        const at::Tensor leaf = input.detach().set_requires_grad(true);
        torch::autograd::backward({forward(leaf)}, {gradient});
      });
      Add(name + ", forward (up to twice)", 2 * times, one,
          row_bytes * (read + written) / limits_.bytes);
      Add(name + ", backward", times, both - one, row_bytes * (2 * read + written) / limits_.bytes);
    };
    const auto width = static_cast<double>(h);
    const auto ffn = static_cast<double>(f);
    measure(
        "norms", 2 * layers(), [&](const at::Tensor& in) { return RmsNormRows(in, weight, 1e-6); },
        x, g, width, width);
    measure(
        "gates", layers(), [&](const at::Tensor& in) { return GatedRows(in); }, gate_up, gated,
        2 * ffn, ffn);
  }

  void MeasureLogits() {
    const int64_t h = config_.hidden_size;
    const at::Tensor hidden = Random({rows_, h}).set_requires_grad(true);
    const at::Tensor head =
        (Random({config_.vocab_size, h}, at::kFloat) * 0.02).set_requires_grad(true);
    const at::Tensor targets =
        at::randint(config_.vocab_size, {rows_}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
    const at::Tensor g = Random({rows_}, at::kFloat);
    const double seconds = SecondsOf([&] {
      const TokenLogProbsResult out = TokenLogProbs(
          hidden, head, targets, 1.0, [&](int64_t begin, const at::Tensor& logprobs) -> RowSlopes {
            return {.of_logprob_N = g.narrow(0, begin, logprobs.size(0))};
          });
      torch::autograd::backward({out.logprobs_N}, {g});
      hidden.mutable_grad() = at::Tensor();
      head.mutable_grad() = at::Tensor();
    });
    // Logits, and both gradients.
    Add("log-probs and their gradients", 1, seconds,
        3 * Flops(rows_, h, config_.vocab_size) / limits_.flops);
  }

  // Adds gradients up, clips and applies them.
  void MeasureUpdate() {
    const int64_t count = std::min<int64_t>(config_.num_parameters(), int64_t{1} << 28);
    const double times = static_cast<double>(config_.num_parameters()) / static_cast<double>(count);
    at::Tensor parameter = Random({count}, at::kFloat).set_requires_grad(true);
    parameter.mutable_grad() = Random({count}, at::kFloat);
    AdamW optimizer({{"parameter", parameter}}, {});
    const double seconds = SecondsOf([&] {
      optimizer.Step(1e-6, GradientFactor(GradientNorm({{"parameter", parameter}}), 1.0));
    });
    // The norm reads gradients; then four tensors are read, three written.
    Add("clipping and AdamW", times, seconds, 32.0 * static_cast<double>(count) / limits_.bytes);
  }

  const ModelConfig& config_;
  const GpuLimits limits_;
  const int64_t rows_ = kNumSequences * kLength;
  std::vector<StepProfile::Part> parts_;
};

// Of large products, as fast as LibTorch makes them.
double MeasureGpuFlops() {
  const at::NoGradGuard no_grad;
  const at::Tensor a = Random({kGpuGemmSize, kGpuGemmSize});
  const at::Tensor b = Random({kGpuGemmSize, kGpuGemmSize});
  const double size = kGpuGemmSize;
  return 2.0 * size * size * size / SecondsOf([&] { at::mm(a, b.t()); });
}

constexpr double kGibibyte = 1024.0 * 1024 * 1024;
constexpr double kDeviation = 0.02;  // of random weights
// What this project asks of itself on an H200: times what transformers reached
// there, the memory of the 4B shape, and the time of a sync.
constexpr double kTimesTransformers = 1.2;
constexpr double kTimesCompiled = 1.15;
constexpr double kTimesCompiledMixed = 1.3;
constexpr double kMaxGib = 110;
constexpr double kMaxSyncMs = 50;

std::optional<double> RequiredSpeed(const std::string& shape) {
  if (shape == "qwen3-4b") return kTimesTransformers * 9470;
  if (shape == "qwen3-0.6b") return kTimesTransformers * 39600;
  return std::nullopt;
}

// What a step trains on.
struct Workload {
  std::string suffix;  // of the names of its measurements
  std::vector<int64_t> lengths;
  double num_tokens() const {
    return static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
  }
};

Workload EqualLengths() {
  return {.suffix = "", .lengths = std::vector<int64_t>(kNumSequences, kLength)};
}

// Exponential, cut at the longest: as responses have them.
Workload MixedLengths() {
  Workload mixed{.suffix = "_mixed", .lengths = {}};
  const CounterRandom random(kGpuSeed, /*stream=*/0);
  int64_t left = kMixedTokens;
  for (uint64_t draw = 0; left > 0; ++draw) {
    const auto length = static_cast<int64_t>(kMeanLength * random.Exponential(draw));
    mixed.lengths.push_back(std::clamp<int64_t>(length, 16, std::min(kMixedLength, left)));
    left -= mixed.lengths.back();
  }
  return mixed;
}

// Groups of two sequences; nearly every token is the policy's.
std::vector<TrainSequence> MakeSequences(const ModelConfig& config, const Workload& workload) {
  TrainBatchOptions batch;
  batch.num_groups = static_cast<int64_t>(workload.lengths.size() + 1) / 2;
  batch.group_size = 2;
  std::vector<TrainSequence> sequences = MakeTrainBatch(config, batch);
  sequences.resize(workload.lengths.size());
  for (size_t s = 0; s < sequences.size(); ++s) {
    TrainSequence& sequence = sequences[s];
    // The forward pass reads all but the last token.
    const auto total = static_cast<size_t>(workload.lengths[s]) + 1;
    sequence.num_prompt_tokens = std::min<int64_t>(16, workload.lengths[s]);
    const std::vector<TokenId> some = sequence.tokens;
    sequence.tokens.resize(total);
    for (size_t i = 0; i < total; ++i) sequence.tokens[i] = some[i % some.size()];
    const size_t responses = sequence.num_response_tokens();
    sequence.mask.assign(responses, 1);
    sequence.rollout_logprobs.assign(responses, -11.9F);
    sequence.versions.assign(responses, 0);
  }
  return sequences;
}

struct PeerKind {
  const char* name;
  const char* script;
};
constexpr PeerKind kTransformers = {"transformers", "gpu_train_peer.py"};
constexpr PeerKind kCompiled = {"compiled", "compiled_peer.py"};

Result<Peer> StartGpuPeer(const ModelConfig& config, const PeerKind& kind,
                          const Workload& workload) {
  PACE_ASSIGN_OR_RETURN(Peer peer, Peer::Start(kind.script));
  std::string request;
  JsonWriter json(request);
  json.BeginObject();
  json.Put("what", "train");
  json.Put("device", "cuda");
  json.Put("sequences", kNumSequences);
  json.Put("length", kLength);
  if (!workload.suffix.empty()) {
    PutArray(json, "lengths", workload.lengths);
    json.Put("bin", kGpuTokenBudget);
  }
  json.Key("config");
  WritePeerConfig(config, json);
  json.EndObject();
  PACE_RETURN_IF_ERROR(peer.Ask(request).status());
  return peer;
}

class GpuTrainBench {
 public:
  explicit GpuTrainBench(const BenchOptions& options) : options_(options) {
    if (options_.shapes.empty()) options_.shapes = {"qwen3-4b", "qwen3-0.6b"};
  }

  Status Run() {
    PACE_ASSIGN_OR_RETURN(device_, FindCudaDevice());
    PACE_RETURN_IF_ERROR(LimitTrainingMemory(device_->memory_bytes));
    PACE_ASSIGN_OR_RETURN(const double bandwidth, MeasureCudaBandwidth());
    limits_ = {.flops = MeasureGpuFlops(), .bytes = bandwidth};
    for (const std::string& shape : options_.shapes) {
      PACE_ASSIGN_OR_RETURN(const ModelConfig config, NamedShape(shape));
      if (config.moe) return InvalidArgument("shape = ", shape, ": decode alone measures experts");
      for (const Workload& workload : {EqualLengths(), MixedLengths()}) {
        PACE_RETURN_IF_ERROR(MeasureWorkload(shape, config, workload));
      }
      ReleaseTrainingMemory();
      profiles_.push_back({shape, step_seconds_, PartsOfAStep(config, limits_).Measure()});
      ReleaseTrainingMemory();
    }
    return Status::Ok();
  }

  void Report(BenchReport& report) const {
    report.measurements = measurements_;
    JsonWriter& settings = report.settings();
    settings.Put("device", "cuda");
    settings.Put("repetitions", options_.repetitions);
    settings.Put("num_sequences", kNumSequences);
    settings.Put("length", kLength);
    settings.Put("token_budget", kGpuTokenBudget);
    settings.Put("kv_gib", kKvGib);
    PutArray(settings, "mixed_lengths", MixedLengths().lengths);
    report.more().Put("command", Command());
    report.more().Put("peer", peers_.at("transformers"));
    report.more().Put("compiled_peer", peers_.at("compiled"));
    WriteGpu(*device_,
             {{"bandwidth_bytes_per_s", limits_.bytes}, {"gemm_flops_per_s", limits_.flops}},
             report.more());
    report.PutProfiles(profiles_);
  }

 private:
  // The trainer, and the engine on the same device.
  struct Pair {
    std::unique_ptr<TorchTrainer> trainer;
    std::unique_ptr<Decoder> decoder;
  };
  Result<Pair> MakePair(const ModelConfig& config) const {
    PACE_ASSIGN_OR_RETURN(
        TrainingNetwork network,
        TrainingNetwork::CreateRandom(
            config, kGpuSeed, kDeviation,
            {.device = at::kCUDA, .compute_in_bf16 = true, .recompute_layers = true}));
    TrainerOptions options = BenchTrainerOptions(1, kGpuTokenBudget);
    options.learning_rate = 1e-6;
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<TorchTrainer> trainer,
                          TorchTrainer::Create(std::move(network), options));
    const double num_blocks = static_cast<double>(kKvGib) * kGibibyte /
                              static_cast<double>(BlockBytes(config, Dtype::kBF16));
    // As with PACE, which scores prefixes.
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder,
                          CreateCudaDecoder(config, {.dtype = Dtype::kBF16,
                                                     .num_blocks = static_cast<int64_t>(num_blocks),
                                                     .num_threads = 1,
                                                     .cache_states = true}));
    return Pair{std::move(trainer), std::move(decoder)};
  }

  struct Round {
    double trained = 0;    // seconds
    double copied = 0;     // the trainer's copy for the engine
    double installed = 0;  // the engine's pause
  };
  // A step and its weight sync, as in a run: a copy for the engine, which installs it
  // between two forward passes.
  static Result<Round> RunRound(Pair& pair, const std::vector<TrainSequence>& sequences) {
    const WallClock clock;
    PACE_RETURN_IF_ERROR(pair.trainer->Step(sequences).status());
    FinishCudaWork();
    Round round;
    round.trained = clock.Now().count();
    PACE_ASSIGN_OR_RETURN(
        const std::shared_ptr<const DecoderWeights> prepared,
        pair.decoder->Prepare(pair.trainer->network().DeviceWeights(Dtype::kBF16)));
    round.copied = clock.Now().count() - round.trained;
    pair.decoder->Install(prepared);
    round.installed = clock.Now().count() - round.trained - round.copied;
    return round;
  }

  // The peers first: what the compiled one holds is what ours may hold.
  Status MeasureWorkload(const std::string& shape, const ModelConfig& config,
                         const Workload& workload) {
    const std::string name = shape + workload.suffix;
    const bool is_equal = workload.suffix.empty();
    std::optional<PeerSpeed> transformers;
    std::optional<PeerSpeed> compiled;
    if (options_.python) {
      if (is_equal) transformers = MeasurePeer(name, config, kTransformers, workload);
      compiled = MeasurePeer(name, config, kCompiled, workload);
    }
    const double limit = options_.memory_gib.value_or(
        compiled.has_value() ? compiled->gib
                             : static_cast<double>(device_->memory_bytes) / kGibibyte);
    PACE_RETURN_IF_ERROR(LimitTrainingMemory(static_cast<int64_t>(limit * kGibibyte)));
    ReleaseTrainingMemory();
    PACE_ASSIGN_OR_RETURN(const Measurement speed, MeasureOurs(name, config, workload));
    measurements_.push_back(Known(name + "_training_memory", "GiB",
                                  static_cast<double>(MostTrainingMemory()) / kGibibyte, limit));
    ReleaseTrainingMemory();
    const auto compare = [&](const std::optional<PeerSpeed>& peer, const PeerKind& kind,
                             double times) {
      if (!peer.has_value()) return;
      measurements_.push_back(RatioOf(speed, peer->speed, Concat(name, "_train_times_", kind.name),
                                      times, Limit::kAtLeast));
      if (peer->gib > 0) {
        measurements_.push_back(
            Known(Concat(name, "_memory_", kind.name), "GiB", peer->gib, std::nullopt));
      }
      measurements_.push_back(peer->speed);
    };
    compare(transformers, kTransformers, kTimesTransformers);
    compare(compiled, kCompiled, is_equal ? kTimesCompiled : kTimesCompiledMixed);
    return Status::Ok();
  }

  Result<Measurement> MeasureOurs(const std::string& name, const ModelConfig& config,
                                  const Workload& workload) {
    PACE_ASSIGN_OR_RETURN(Pair pair, MakePair(config));
    const std::vector<TrainSequence> sequences = MakeSequences(config, workload);
    Measurement speed = Rate(name + "_train", "tokens/s", RequiredSpeed(name));
    Measurement share = Rate(name + "_share_of_gemm_limit", "ratio");
    Measurement sync{.name = name + "_sync", .unit = "ms", .limit = kMaxSyncMs};
    Measurement pause{.name = name + "_sync_pause", .unit = "ms", .limit = kMaxSyncMs};
    std::vector<double> seconds;
    for (int64_t i = 0; i <= options_.repetitions; ++i) {
      PACE_ASSIGN_OR_RETURN(const Round round, RunRound(pair, sequences));
      if (i == 0) continue;  // fills the optimizer and the allocator
      seconds.push_back(round.trained);
      speed.Add(workload.num_tokens() / round.trained);
      share.Add(speed.repetitions.back() * FlopsPerToken(config, workload) / limits_.flops);
      sync.Add(1e3 * (round.copied + round.installed));
      pause.Add(1e3 * round.installed);
    }
    if (workload.suffix.empty()) step_seconds_ = MedianOf(seconds);
    const bool is_large = name == "qwen3-4b";
    Measurement memory = Known(name + "_memory", "GiB", UsedGib(),
                               is_large ? std::optional<double>(kMaxGib) : std::nullopt);
    for (const Measurement* measured : {&speed, &share, &sync, &pause, &memory}) {
      measurements_.push_back(*measured);
    }
    return speed;
  }

  // What the step must compute, recomputed layers included.
  static double FlopsPerToken(const ModelConfig& config, const Workload& workload) {
    const double matrices = static_cast<double>(config.num_parameters());
    double pairs = 0;
    for (const int64_t length : workload.lengths) pairs += static_cast<double>(length * length);
    const double attention =
        2.0 * pairs / workload.num_tokens() *
        static_cast<double>(config.num_heads * config.head_dim * config.num_layers);
    return 8 * matrices + 4.5 * attention;
  }

  double UsedGib() const {
    const Result<CudaDevice> now = FindCudaDevice();
    if (!now.ok()) return 0;
    return static_cast<double>(now->memory_bytes - now->free_bytes) / kGibibyte;
  }

  struct PeerSpeed {
    Measurement speed;
    double gib = 0;
  };
  std::optional<PeerSpeed> MeasurePeer(const std::string& name, const ModelConfig& config,
                                       const PeerKind& kind, const Workload& workload) {
    Result<Peer> peer = StartGpuPeer(config, kind, workload);
    std::string& description = peers_[kind.name];
    description = DescriptionOf(peer);
    if (!peer.ok()) return std::nullopt;
    PeerSpeed measured{.speed = Rate(Concat(name, "_train_", kind.name), "tokens/s")};
    double micro_batch = kNumSequences;
    for (int64_t round = 0; round <= options_.repetitions; ++round) {
      const Result<PeerAnswer> answer =
          peer->Ask(Concat("{\"micro_batch\": ", static_cast<int64_t>(micro_batch), "}"),
                    {"seconds", "micro_batch"});
      if (!answer.ok()) {
        description += ": " + answer.status().message();
        return std::nullopt;
      }
      micro_batch = answer->numbers.at("micro_batch");
      if (const auto used = answer->numbers.find("gib"); used != answer->numbers.end()) {
        measured.gib = used->second;
      }
      if (round > 0) measured.speed.Add(workload.num_tokens() / answer->numbers.at("seconds"));
    }
    return measured;
  }

  std::string Command() const {
    std::string command =
        Concat("pace bench train --device cuda --repetitions ", options_.repetitions, " --shape");
    for (const std::string& shape : options_.shapes) command += " " + shape;
    if (options_.memory_gib.has_value()) command += Concat(" --memory ", *options_.memory_gib);
    return options_.python ? command : command + " --no-python";
  }

  BenchOptions options_;
  std::optional<CudaDevice> device_;
  GpuLimits limits_;
  double step_seconds_ = 0;
  std::map<std::string, std::string> peers_ = {{"transformers", "not asked for"},
                                               {"compiled", "not asked for"}};
  std::vector<Measurement> measurements_;
  std::vector<StepProfile> profiles_;
};

}  // namespace

Status RunGpuTrainBench(const BenchOptions& options, BenchReport& report) {
  GpuTrainBench bench(options);
  PACE_RETURN_IF_ERROR(bench.Run());
  bench.Report(report);
  return Status::Ok();
}

}  // namespace pace
