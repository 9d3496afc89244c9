#include "bench/decode_bench.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "bench/bench_model.h"
#include "bench/bench_report.h"
#include "bench/decode_loop.h"
#include "bench/machine.h"
#include "bench/measurement.h"
#include "bench/peer_process.h"
#include "bench/scripts.h"
#include "bench/step_profile.h"
#include "core/json_scanner.h"
#include "model/cuda/decode/cuda_decoder.h"

namespace pace {
namespace {

// Fewer tokens for the peer, which is slow.
constexpr int64_t kPeerTokens = 16;
constexpr Seconds kPeerTimeout(300);

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

std::string PeerConfig(const ModelConfig& config, const DecodeBenchOptions& options) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  json.Put("device", DeviceName(options.device));
  json.Put("threads", options.num_threads);
  json.Key("config");
  WritePeerConfig(config, json);
  json.EndObject();
  return text;
}

// `transformers`, loaded with one shape after the other.
class DecodePeer {
 public:
  static Result<std::unique_ptr<DecodePeer>> Start() {
    PACE_ASSIGN_OR_RETURN(PeerProcess process,
                          PeerProcess::Start(PeerPython(), DecodePeerSource(), {}, ""));
    return std::unique_ptr<DecodePeer>(new DecodePeer(std::move(process)));
  }
  Status Load(const ModelConfig& config, const DecodeBenchOptions& options) {
    PACE_RETURN_IF_ERROR(process_.Send(PeerConfig(config, options)));
    PACE_ASSIGN_OR_RETURN(const std::string line, process_.ReadLine(kPeerTimeout));
    JsonScanner scan(line);
    scan.EnterObject();
    while (scan.NextKey()) scan.Text(version_);
    return scan.ok() ? Status::Ok() : scan.status();
  }
  // Seconds for kPeerTokens tokens.
  Result<double> Decode(int64_t batch, int64_t context) {
    PACE_RETURN_IF_ERROR(process_.Send(Concat("{\"batch\": ", batch, ", \"context\": ", context,
                                              ", \"new_tokens\": ", kPeerTokens, "}")));
    PACE_ASSIGN_OR_RETURN(const std::string line, process_.ReadLine(kPeerTimeout));
    double seconds = 0;
    JsonScanner scan(line);
    scan.EnterObject();
    while (scan.NextKey()) scan.Real(0, 1e6, "", seconds);
    if (!scan.ok()) return scan.status();
    return seconds;
  }
  const std::string& version() const { return version_; }

 private:
  explicit DecodePeer(PeerProcess process) : process_(std::move(process)) {}
  PeerProcess process_;
  std::string version_;
};

class DecodeBench {
 public:
  explicit DecodeBench(const DecodeBenchOptions& options) : options_(options) {}

  Status Run() {
    if (options_.device == DeviceKind::kCuda) {
      PACE_ASSIGN_OR_RETURN(device_, FindCudaDevice());
      PACE_ASSIGN_OR_RETURN(const double bandwidth, MeasureCudaBandwidth());
      bandwidth_ = bandwidth;
    }
    if (options_.python) peer_ = DecodePeer::Start();
    for (const std::string& shape : options_.shapes) {
      PACE_ASSIGN_OR_RETURN(const ModelConfig config, NamedShape(shape));
      PACE_RETURN_IF_ERROR(MeasureOurs(shape, config));
      if (peer_.ok()) {
        // A peer that cannot be measured is not there.
        const Status status = MeasurePeer(shape, config);
        if (!status.ok()) peer_ = status;
      }
    }
    return Status::Ok();
  }

  std::string Report() const {
    return BenchReport(
        "decode", measurements_, [&](JsonWriter& json) { WriteSettings(json); },
        [&](JsonWriter& json) {
          json.Put("command", Command());
          json.Put("peer", version_.empty() ? peer_.status().message() : version_);
          if (device_) WriteGpu(*device_, {{"bandwidth_bytes_per_s", bandwidth_}}, json);
          if (device_) WriteProfiles(profiles_, json);
        });
  }

 private:
  Measurement Begin(const std::string& name, const std::string& unit,
                    std::optional<double> at_least) const {
    return {.name = name, .unit = unit, .limit = at_least, .limit_kind = Limit::kAtLeast};
  }

  Status MeasureOurs(const std::string& shape, const ModelConfig& config) {
    const int64_t largest = *std::max_element(options_.batches.begin(), options_.batches.end());
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<DecodeLoop> loop,
                          DecodeLoop::Create(config, options_.device, options_.num_threads, largest,
                                             options_.context + options_.new_tokens));
    Measurement prefill = Begin(shape + "_prefill", "tokens/s", std::nullopt);
    Measurement install = Begin(shape + "_install", "ms", std::nullopt);
    for (int64_t round = 0; round <= options_.repetitions; ++round) {
      PACE_ASSIGN_OR_RETURN(const double seconds, loop->Prefill(largest, options_.context));
      const double installed = loop->Install();
      if (round == 0) continue;
      prefill.repetitions.push_back(static_cast<double>(largest * options_.context) / seconds);
      install.repetitions.push_back(1e3 * installed);
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
    Measurement speed = Begin(name, "tokens/s", RequiredSpeed(shape, batch, options_.device));
    Measurement share =
        Begin(name + "_share_of_bandwidth", "ratio", RequiredShare(shape, batch, options_.device));
    for (int64_t round = 0; round <= options_.repetitions; ++round) {
      PACE_ASSIGN_OR_RETURN(const double seconds,
                            loop.Decode(batch, options_.context, options_.new_tokens));
      if (round == 0) continue;  // captures the graph
      const double per_step = seconds / static_cast<double>(options_.new_tokens);
      speed.repetitions.push_back(static_cast<double>(batch) / per_step);
      share.repetitions.push_back(StepBytes(config, batch) / per_step / bandwidth_);
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
    const int64_t context = options_.context + options_.new_tokens / 2;
    const int64_t kv = batch * context * config.num_layers * 2 * config.kv_size();
    return 2.0 * static_cast<double>(config.num_parameters() + kv);
  }

  Status MeasurePeer(const std::string& shape, const ModelConfig& config) {
    PACE_RETURN_IF_ERROR((*peer_)->Load(config, options_));
    version_ = (*peer_)->version();
    for (const int64_t batch : options_.batches) {
      Measurement speed =
          Begin(Concat(shape, "_batch_", batch, "_transformers"), "tokens/s", std::nullopt);
      for (int64_t round = 0; round <= options_.repetitions; ++round) {
        PACE_ASSIGN_OR_RETURN(const double seconds, (*peer_)->Decode(batch, options_.context));
        if (round == 0) continue;
        speed.repetitions.push_back(static_cast<double>(batch * kPeerTokens) / seconds);
      }
      measurements_.push_back(std::move(speed));
    }
    return Status::Ok();
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

  void WriteSettings(JsonWriter& json) const {
    json.BeginObject();
    json.Put("device", DeviceName(options_.device));
    json.Put("repetitions", options_.repetitions);
    json.Put("context", options_.context);
    json.Put("new_tokens", options_.new_tokens);
    json.Put("peer_new_tokens", kPeerTokens);
    json.EndObject();
  }

  const DecodeBenchOptions options_;
  std::optional<CudaDevice> device_;
  double bandwidth_ = 1;
  Result<std::unique_ptr<DecodePeer>> peer_ = Unavailable("not asked for");
  std::string version_;
  std::vector<Measurement> measurements_;
  std::vector<StepProfile> profiles_;
};

}  // namespace

Status DecodeBenchOptions::Validate() const {
  if (repetitions < 1 || context < 1 || new_tokens < 1 || num_threads < 1) {
    return InvalidArgument("repetitions, context, new tokens and threads must be at least 1");
  }
  if (shapes.empty() || batches.empty()) return InvalidArgument("no shape, or no batch");
  for (const int64_t batch : batches) {
    if (batch < 1) return InvalidArgument("batch = ", batch, ": must be >= 1");
  }
  return CheckShapes(shapes);
}

Result<std::string> RunDecodeBench(const DecodeBenchOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  DecodeBench bench(options);
  PACE_RETURN_IF_ERROR(bench.Run());
  return bench.Report();
}

}  // namespace pace
