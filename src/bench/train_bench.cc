// `pace bench train`: training speed beside a plain PyTorch and `transformers` loop on the
// same weights, sequences and threads, in the same rounds.
//
// Also the memory of a step on both sides, the speed against the machine's limit for matrix
// products, and whether both sides compute the same loss and gradient norm: if not, there
// is an error instead of a report. On a GPU: gpu_train_bench.cc.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_model.h"
#include "bench/benches.h"
#include "bench/peer.h"
#include "bench/train_loop.h"
#include "model/cpu/kernels/isa.h"

namespace pace {
namespace {

constexpr int64_t kTokenBudget = 2048;  // tokens in flight, over all threads

// The limits that this project sets itself, against the peer in float32.
// bf16 has one where the machine has tiles for it.
std::optional<double> RequiredSpeedup(Dtype dtype) {
  if (dtype == Dtype::kF32) return 1.5;
  return BestIsa() == Isa::kAmx ? std::optional<double>(2) : std::nullopt;
}
constexpr double kMaxMemory = 1;
// Of losses and gradient norms of the same step in float32, relative.
constexpr double kTolerance = 1e-3;
// A backward pass is two forward passes.
constexpr double kPassesPerStep = 3;

std::string_view Label(Dtype dtype) {
  return dtype == Dtype::kBF16 ? "bf16" : "float32";
}

// How the peer takes sequences into padded micro-batches: as they came, by length, or one
// by one. Each has weights of its own, from the same folder.
enum PeerOrder : size_t { kPlain, kSorted, kSingle };
constexpr PeerOrder kPeerOrders[] = {kPlain, kSorted, kSingle};
constexpr const char* kOrderNames[] = {"plain", "sorted", "single"};

std::string PeerLabel(PeerOrder order) {
  return order == kPlain ? "transformers" : Concat("transformers_", kOrderNames[order]);
}

Result<TrainStep> StepOfPeer(Peer& peer, PeerOrder order, bool measure_memory) {
  PACE_ASSIGN_OR_RETURN(
      const PeerAnswer answer,
      peer.Ask(Concat("{\"step\": \"", kOrderNames[order],
                      "\", \"measure_memory\": ", measure_memory ? "true" : "false", "}"),
               {"seconds", "loss", "grad_norm"}));
  TrainStep step{.seconds = answer.numbers.at("seconds"),
                 .loss = answer.numbers.at("loss"),
                 .grad_norm = answer.numbers.at("grad_norm")};
  const auto peak = answer.numbers.find("peak_bytes");
  if (peak != answer.numbers.end()) step.peak_bytes = static_cast<int64_t>(peak->second);
  return step;
}

// One way to train: ours in a dtype, or the peer's in an order.
struct Side {
  std::string name = {};
  Measurement speed = {.name = {}, .unit = "tokens/s"};
  std::vector<TrainStep> steps = {};  // all of them, in order
  std::optional<double> megabytes = std::nullopt;

  void Add(const TrainStep& step, int64_t num_tokens, bool count) {
    steps.push_back(step);
    if (step.peak_bytes.has_value()) megabytes = 1e-6 * static_cast<double>(*step.peak_bytes);
    if (count) speed.Add(static_cast<double>(num_tokens) / step.seconds);
  }
};

double RelativeDifference(double a, double b) {
  return std::abs(a - b) / std::max(std::abs(b), 1e-6);
}

// The largest difference of losses and norms, step by step.
double DifferenceOf(const Side& a, const Side& b) {
  double largest = 0;
  for (size_t i = 0; i < std::min(a.steps.size(), b.steps.size()); ++i) {
    largest = std::max({largest, RelativeDifference(a.steps[i].loss, b.steps[i].loss),
                        RelativeDifference(a.steps[i].grad_norm, b.steps[i].grad_norm)});
  }
  return largest;
}

// Everything that is measured with one number of threads.
class Lane {
 public:
  explicit Lane(int64_t num_threads)
      : num_threads_(num_threads), options_(BenchTrainerOptions(num_threads, kTokenBudget)) {
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      ours_[dtype].name = Concat("train_", Label(dtype), "_threads_", num_threads);
    }
    for (const PeerOrder order : kPeerOrders) {
      theirs_[order].name = Concat("train_", PeerLabel(order), "_threads_", num_threads);
    }
  }

  // A peer that cannot be had is no error: the report says why.
  Status Start(const BenchModel& model, const std::vector<TrainSequence>& sequences, bool python) {
    for (auto& [dtype, side] : ours_) {
      PACE_ASSIGN_OR_RETURN(loops_[dtype],
                            TrainLoop::Create(model.config, model.weights, dtype, options_));
    }
    if (python) peer_ = StartPeer(model.folder, sequences);
    return Status::Ok();
  }

  // One step of every side. Memory and speed are never taken from the same one.
  Status RunRound(const std::vector<TrainSequence>& sequences, bool measure_memory, bool count) {
    const int64_t num_tokens = CountTokens(sequences);
    for (auto& [dtype, side] : ours_) {
      PACE_ASSIGN_OR_RETURN(const TrainStep step, loops_[dtype]->Step(sequences, measure_memory));
      side.Add(step, num_tokens, count);
      if (count)
        gemm_[dtype].Add(GemmGigaflops(TorchHasBf16Products() ? dtype : Dtype::kF32, num_threads_));
    }
    if (!peer_.ok()) return Status::Ok();
    for (auto& [order, side] : theirs_) {
      PACE_ASSIGN_OR_RETURN(const TrainStep step, StepOfPeer(*peer_, order, measure_memory));
      side.Add(step, num_tokens, count);
    }
    return Status::Ok();
  }

  // Both sides must do the same work, or a ratio of speeds says nothing.
  Status CheckSameWork() const {
    if (!peer_.ok()) return Status::Ok();
    const Side& ours = ours_.at(Dtype::kF32);
    for (const auto& [order, theirs] : theirs_) {
      const double difference = DifferenceOf(ours, theirs);
      if (difference <= kTolerance) continue;
      return DataLoss(ours.name, ": loss ", ours.steps[0].loss, ", gradient norm ",
                      ours.steps[0].grad_norm, "; ", theirs.name, ": ", theirs.steps[0].loss, ", ",
                      theirs.steps[0].grad_norm, ": must agree to ", kTolerance, " in every step");
    }
    return Status::Ok();
  }

  void AddMeasurements(double flops_per_token, std::vector<Measurement>& all) const {
    for (const auto& [dtype, side] : ours_) {
      AddSide(side, all);
      if (peer_.ok()) AddComparison(dtype, all);
      AddShareOfLimit(dtype, flops_per_token, all);
    }
    if (!peer_.ok()) return;
    for (const auto& [order, side] : theirs_) AddSide(side, all);
  }

  void WriteWork(JsonWriter& json) const {
    json.Key(Concat("threads_", num_threads_));
    json.BeginObject();
    const Side& exact = ours_.at(Dtype::kF32);
    json.Put("loss", exact.steps[0].loss);
    json.Put("grad_norm", exact.steps[0].grad_norm);
    json.Put("bf16_difference", DifferenceOf(ours_.at(Dtype::kBF16), exact));
    if (peer_.ok()) {
      json.Put("transformers_difference", DifferenceOf(exact, theirs_.at(kPlain)));
      for (size_t i = 0; i < std::size(kPeerOrders); ++i) {
        json.Put(PeerLabel(kPeerOrders[i]) + "_padding_share", padding_shares_[i]);
      }
    }
    json.EndObject();
  }

  std::string PeerVersion() const { return DescriptionOf(peer_); }

 private:
  Result<Peer> StartPeer(const std::string& folder, const std::vector<TrainSequence>& sequences) {
    PACE_ASSIGN_OR_RETURN(Peer peer, Peer::Start("train_peer.py"));
    PACE_ASSIGN_OR_RETURN(const PeerAnswer loaded,
                          peer.Ask(TrainLoadRequest(folder, sequences, options_, kTokenBudget)));
    if (loaded.rows.size() != 1 || loaded.rows[0].size() != std::size(kPeerOrders)) {
      return InvalidArgument("train_peer.py: must answer with a share of padding for each order");
    }
    padding_shares_ = loaded.rows[0];
    return peer;
  }

  static void AddSide(const Side& side, std::vector<Measurement>& all) {
    all.push_back(side.speed);
    all.back().name = side.name;
    if (!side.megabytes.has_value()) return;
    all.push_back(Known(side.name + "_memory", "MB", *side.megabytes));
  }

  void AddComparison(Dtype dtype, std::vector<Measurement>& all) const {
    const Side& ours = ours_.at(dtype);
    const Side& plain = theirs_.at(kPlain);
    for (const auto& [order, theirs] : theirs_) {
      all.push_back(
          RatioOf(ours.speed, theirs.speed, Concat(ours.name, "_times_", PeerLabel(order)),
                  order == kPlain ? RequiredSpeedup(dtype) : std::nullopt, Limit::kAtLeast));
    }
    if (!ours.megabytes.has_value() || !plain.megabytes.has_value()) return;
    all.push_back(Known(ours.name + "_memory_over_transformers", "ratio",
                        *ours.megabytes / *plain.megabytes, kMaxMemory));
  }

  void AddShareOfLimit(Dtype dtype, double flops_per_token, std::vector<Measurement>& all) const {
    const Side& ours = ours_.at(dtype);
    Measurement limit = gemm_.at(dtype);
    limit.name = Concat("gemm_limit_", Label(dtype), "_threads_", num_threads_);
    limit.unit = "GFLOP/s";
    Measurement share{.name = ours.name + "_share_of_gemm_limit", .unit = "ratio"};
    for (size_t i = 0; i < limit.repetitions.size(); ++i) {
      share.Add(1e-9 * flops_per_token * ours.speed.repetitions[i] / limit.repetitions[i]);
    }
    all.push_back(std::move(limit));
    all.push_back(std::move(share));
  }

  const int64_t num_threads_;
  const TrainerOptions options_;
  std::map<Dtype, Side> ours_;
  std::map<PeerOrder, Side> theirs_;
  std::map<Dtype, std::unique_ptr<TrainLoop>> loops_;
  std::map<Dtype, Measurement> gemm_;
  Result<Peer> peer_ = Unavailable("not asked for");
  std::vector<double> padding_shares_;  // of the peer's tokens, in the order of kPeerOrders
};

// Floating-point operations of training on the batch, per token of it: what a
// loop must compute at least, with logits for responses alone.
double NumFlopsPerToken(const ModelConfig& config, const std::vector<TrainSequence>& sequences) {
  double flops = 0;
  for (const TrainSequence& sequence : sequences) {
    const auto length = static_cast<double>(sequence.tokens.size());
    flops += length * LayerFlops(config, 0.5 * length) +
             static_cast<double>(sequence.num_response_tokens()) * HeadFlops(config);
  }
  return kPassesPerStep * flops / static_cast<double>(CountTokens(sequences));
}

}  // namespace

Status RunTrainBench(const BenchOptions& options, BenchReport& report) {
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_RETURN_IF_ERROR(CheckShapes(options.shapes));
  if (options.device == DeviceKind::kCuda) return RunGpuTrainBench(options, report);
  if (options.num_threads > kTokenBudget) {
    return InvalidArgument("threads = ", options.num_threads, ": must be <= ", kTokenBudget);
  }
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<BenchModel> model, BenchModel::Load(options.model));
  const ModelConfig& config = model->config;
  std::vector<TrainSequence> sequences = MakeTrainBatch(config, {});
  PACE_RETURN_IF_ERROR(RecordLogProbs(config, model->weights, sequences));

  std::vector<std::unique_ptr<Lane>> lanes;
  lanes.push_back(std::make_unique<Lane>(1));
  if (options.num_threads > 1) lanes.push_back(std::make_unique<Lane>(options.num_threads));
  for (const std::unique_ptr<Lane>& lane : lanes) {
    PACE_RETURN_IF_ERROR(lane->Start(*model, sequences, options.python));
  }
  // The first round warms up and fills the optimizers, the second measures
  // memory; neither counts.
  for (int64_t round = 0; round < options.repetitions + 2; ++round) {
    for (const std::unique_ptr<Lane>& lane : lanes) {
      PACE_RETURN_IF_ERROR(lane->RunRound(sequences, round == 1, round > 1));
      PACE_RETURN_IF_ERROR(lane->CheckSameWork());
    }
  }
  for (const std::unique_ptr<Lane>& lane : lanes) {
    lane->AddMeasurements(NumFlopsPerToken(config, sequences), report.measurements);
  }
  JsonWriter& settings = report.settings();
  settings.Put("model",
               options.model.empty() ? std::string("qwen3 shape, random weights") : options.model);
  settings.Put("num_parameters", config.num_parameters());
  settings.Put("repetitions", options.repetitions);
  settings.Put("threads", options.num_threads);
  settings.Put("token_budget", kTokenBudget);
  settings.Put("num_sequences", sequences.size());
  settings.Put("num_tokens", CountTokens(sequences));
  JsonWriter& json = report.more();
  json.Put("peer", lanes.back()->PeerVersion());
  json.Put("isa", IsaName(BestIsa()));
  json.Key("work");
  json.BeginObject();
  for (const std::unique_ptr<Lane>& lane : lanes) lane->WriteWork(json);
  json.EndObject();
  return Status::Ok();
}

}  // namespace pace
