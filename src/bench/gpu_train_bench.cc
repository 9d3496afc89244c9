#include "bench/gpu_train_bench.h"

#include <memory>
#include <optional>
#include <utility>

#include "bench/bench_model.h"
#include "bench/bench_report.h"
#include "bench/gpu_train_parts.h"
#include "bench/machine.h"
#include "bench/measurement.h"
#include "bench/peer_process.h"
#include "bench/scripts.h"
#include "bench/step_profile.h"
#include "bench/train_batch.h"
#include "bench/train_loop.h"
#include "core/json_scanner.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/cuda/train/training_functions.h"

namespace pace {
namespace {

constexpr Seconds kPeerTimeout(300);
constexpr double kGibibyte = 1024.0 * 1024 * 1024;
constexpr double kDeviation = 0.02;  // of random weights
constexpr uint64_t kSeed = 7;
// What this project asks of itself on an H200: times what transformers reached
// there, the memory of the 4B shape, and the time of a sync.
constexpr double kTimesTransformers = 1.2;
constexpr double kMaxGib = 110;
constexpr double kMaxSyncMs = 50;

std::optional<double> RequiredSpeed(const std::string& shape) {
  if (shape == "qwen3-4b") return kTimesTransformers * 9470;
  if (shape == "qwen3-0.6b") return kTimesTransformers * 39600;
  return std::nullopt;
}

// Groups of whole sequences; nearly every token is the policy's.
std::vector<TrainSequence> MakeSequences(const ModelConfig& config,
                                         const GpuTrainBenchOptions& options) {
  // The forward pass reads all but the last token.
  TrainBatchOptions batch;
  batch.num_groups = options.num_sequences / 2;
  batch.group_size = 2;
  std::vector<TrainSequence> sequences = MakeTrainBatch(config, batch);
  const auto total = static_cast<size_t>(options.length) + 1;
  for (TrainSequence& sequence : sequences) {
    sequence.num_prompt_tokens = 16;
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

class TrainingPeer {
 public:
  static Result<std::unique_ptr<TrainingPeer>> Start(const ModelConfig& config,
                                                     const GpuTrainBenchOptions& options) {
    PACE_ASSIGN_OR_RETURN(PeerProcess process,
                          PeerProcess::Start(PeerPython(), GpuTrainPeerSource(), {}, ""));
    std::unique_ptr<TrainingPeer> peer(new TrainingPeer(std::move(process)));
    peer->micro_batch_ = options.num_sequences;
    std::string request;
    JsonWriter json(request);
    json.BeginObject();
    json.Put("sequences", options.num_sequences);
    json.Put("length", options.length);
    json.Key("config");
    WritePeerConfig(config, json);
    json.EndObject();
    PACE_RETURN_IF_ERROR(peer->process_.Send(request));
    PACE_ASSIGN_OR_RETURN(const std::string line, peer->process_.ReadLine(kPeerTimeout));
    JsonScanner scan(line);
    scan.EnterObject();
    while (scan.NextKey()) scan.Text(peer->version_);
    if (!scan.ok()) return scan.status();
    return peer;
  }

  Result<double> Step() {
    PACE_RETURN_IF_ERROR(process_.Send(Concat("{\"micro_batch\": ", micro_batch_, "}")));
    PACE_ASSIGN_OR_RETURN(const std::string line, process_.ReadLine(kPeerTimeout));
    double seconds = 0;
    JsonScanner scan(line);
    scan.EnterObject();
    while (scan.NextKey()) {
      if (scan.key() == "seconds") {
        scan.Real(0, 1e6, "", seconds);
      } else {
        scan.Integer(1, 1'000'000, "", micro_batch_);
      }
    }
    if (!scan.ok()) return scan.status();
    return seconds;
  }
  const std::string& version() const { return version_; }

 private:
  explicit TrainingPeer(PeerProcess process) : process_(std::move(process)) {}
  PeerProcess process_;
  std::string version_;
  int64_t micro_batch_ = 1;
};

Measurement Begin(std::string name, std::string unit, std::optional<double> limit, Limit kind) {
  return {.name = std::move(name), .unit = std::move(unit), .limit = limit, .limit_kind = kind};
}

class GpuTrainBench {
 public:
  explicit GpuTrainBench(const GpuTrainBenchOptions& options) : options_(options) {}

  Status Run() {
    PACE_ASSIGN_OR_RETURN(device_, FindCudaDevice());
    PACE_ASSIGN_OR_RETURN(const double bandwidth, MeasureCudaBandwidth());
    limits_ = {.flops = MeasureGpuFlops(), .bytes = bandwidth};
    for (const std::string& shape : options_.shapes) {
      PACE_ASSIGN_OR_RETURN(const ModelConfig config, NamedShape(shape));
      PACE_RETURN_IF_ERROR(MeasureOurs(shape, config));
      ReleaseTrainingMemory();
      profiles_.push_back(
          {shape, step_seconds_,
           MeasureStepParts(config, {options_.num_sequences, options_.length}, limits_)});
      ReleaseTrainingMemory();
      // A peer that cannot be measured is not there.
      if (options_.python) MeasurePeer(shape, config);
    }
    return Status::Ok();
  }

  std::string Report() const {
    return BenchReport(
        "train", measurements_, [&](JsonWriter& json) { WriteSettings(json); },
        [&](JsonWriter& json) {
          json.Put("command", Command());
          json.Put("peer", peer_);
          WriteGpu(*device_,
                   {{"bandwidth_bytes_per_s", limits_.bytes}, {"gemm_flops_per_s", limits_.flops}},
                   json);
          WriteProfiles(profiles_, json);
        });
  }

 private:
  double num_tokens() const {
    return static_cast<double>(options_.num_sequences * options_.length);
  }

  // The trainer, and the engine beside it.
  struct Pair {
    std::unique_ptr<Trainer> trainer;
    std::unique_ptr<Decoder> decoder;
  };
  Result<Pair> MakePair(const ModelConfig& config) const {
    PACE_ASSIGN_OR_RETURN(
        TrainingNetwork network,
        TrainingNetwork::CreateRandom(
            config, kSeed, kDeviation,
            {.device = at::kCUDA, .compute_in_bf16 = true, .recompute_layers = true}));
    TrainerOptions options = BenchTrainerOptions(1, options_.token_budget);
    options.learning_rate = 1e-6;
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                          Trainer::Create(std::move(network), options));
    const double num_blocks = static_cast<double>(options_.kv_gib) * kGibibyte /
                              static_cast<double>(BlockBytes(config, Dtype::kBF16));
    // As beside PACE, which scores prefixes.
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
  // A step, and the weights' way as in a run: a copy for the engine, which takes it at
  // a boundary.
  static Result<Round> RunRound(Pair& pair, int64_t step,
                                const std::vector<TrainSequence>& sequences) {
    const WallClock clock;
    PACE_RETURN_IF_ERROR(pair.trainer->Step(PolicyVersion(step), sequences).status());
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

  Status MeasureOurs(const std::string& shape, const ModelConfig& config) {
    PACE_ASSIGN_OR_RETURN(Pair pair, MakePair(config));
    const std::vector<TrainSequence> sequences = MakeSequences(config, options_);
    Measurement speed = Begin(shape + "_train", "tokens/s", RequiredSpeed(shape), Limit::kAtLeast);
    Measurement share =
        Begin(shape + "_share_of_gemm_limit", "ratio", std::nullopt, Limit::kAtLeast);
    Measurement sync = Begin(shape + "_sync", "ms", kMaxSyncMs, Limit::kAtMost);
    Measurement pause = Begin(shape + "_sync_pause", "ms", kMaxSyncMs, Limit::kAtMost);
    std::vector<double> seconds;
    for (int64_t i = 0; i <= options_.repetitions; ++i) {
      PACE_ASSIGN_OR_RETURN(const Round round, RunRound(pair, i, sequences));
      if (i == 0) continue;  // fills the optimizer and the allocator
      seconds.push_back(round.trained);
      speed.repetitions.push_back(num_tokens() / round.trained);
      share.repetitions.push_back(speed.repetitions.back() * FlopsPerToken(config) / limits_.flops);
      sync.repetitions.push_back(1e3 * (round.copied + round.installed));
      pause.repetitions.push_back(1e3 * round.installed);
    }
    step_seconds_ = MedianOf(seconds);
    Measurement memory =
        Begin(shape + "_memory", "GiB",
              shape == "qwen3-4b" ? std::optional<double>(kMaxGib) : std::nullopt, Limit::kAtMost);
    memory.repetitions = {UsedGib()};
    for (Measurement* measured : {&speed, &share, &sync, &pause, &memory}) {
      measurements_.push_back(std::move(*measured));
    }
    return Status::Ok();
  }

  // What the step must compute, layers once more included.
  double FlopsPerToken(const ModelConfig& config) const {
    const double matrices = static_cast<double>(config.num_parameters());
    const double attention = 2.0 * static_cast<double>(options_.length * config.num_heads *
                                                       config.head_dim * config.num_layers);
    return 8 * matrices + 4.5 * attention;
  }

  double UsedGib() const {
    const Result<CudaDevice> now = FindCudaDevice();
    if (!now.ok()) return 0;
    return static_cast<double>(now->memory_bytes - now->free_bytes) / kGibibyte;
  }

  void MeasurePeer(const std::string& shape, const ModelConfig& config) {
    const Result<std::unique_ptr<TrainingPeer>> peer = TrainingPeer::Start(config, options_);
    if (!peer.ok()) {
      peer_ = peer.status().message();
      return;
    }
    peer_ = (*peer)->version();
    Measurement speed =
        Begin(shape + "_train_transformers", "tokens/s", std::nullopt, Limit::kAtLeast);
    for (int64_t round = 0; round <= options_.repetitions; ++round) {
      const Result<double> seconds = (*peer)->Step();
      if (!seconds.ok()) {
        peer_ += ": " + seconds.status().message();
        return;
      }
      if (round > 0) speed.repetitions.push_back(num_tokens() / *seconds);
    }
    for (const Measurement& ours : measurements_) {
      if (ours.name != shape + "_train") continue;
      Measurement ratio = RatioOf(ours, speed, shape + "_train_times_transformers", 0);
      ratio.limit = kTimesTransformers;
      ratio.limit_kind = Limit::kAtLeast;
      measurements_.push_back(std::move(ratio));
      break;
    }
    measurements_.push_back(std::move(speed));
  }

  std::string Command() const {
    std::string command =
        Concat("pace bench train --device cuda --repetitions ", options_.repetitions, " --shape");
    for (const std::string& shape : options_.shapes) command += " " + shape;
    return options_.python ? command : command + " --no-python";
  }

  void WriteSettings(JsonWriter& json) const {
    json.BeginObject();
    json.Put("device", "cuda");
    json.Put("repetitions", options_.repetitions);
    json.Put("num_sequences", options_.num_sequences);
    json.Put("length", options_.length);
    json.Put("token_budget", options_.token_budget);
    json.Put("kv_gib", options_.kv_gib);
    json.EndObject();
  }

  const GpuTrainBenchOptions options_;
  std::optional<CudaDevice> device_;
  GpuLimits limits_;
  double step_seconds_ = 0;
  std::string peer_ = "not asked for";
  std::vector<Measurement> measurements_;
  std::vector<StepProfile> profiles_;
};

}  // namespace

Status GpuTrainBenchOptions::Validate() const {
  if (repetitions < 1 || num_sequences < 2 || num_sequences % 2 != 0 || length < 64) {
    return InvalidArgument("repetitions must be at least 1, sequences even, their length 64");
  }
  return CheckShapes(shapes);
}

Result<std::string> RunGpuTrainBench(const GpuTrainBenchOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  GpuTrainBench bench(options);
  PACE_RETURN_IF_ERROR(bench.Run());
  return bench.Report();
}

}  // namespace pace
