#include "bench/rollout_bench.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "bench/bench_model.h"
#include "bench/bench_report.h"
#include "bench/flops.h"
#include "bench/measurement.h"
#include "bench/rollout_loop.h"
#include "bench/transformers_peer.h"
#include "core/random.h"
#include "model/cpu/kernels/isa.h"

namespace pace {
namespace {

constexpr uint64_t kSeed = 20261115;
constexpr int64_t kSyncsPerRound = 3;
constexpr double kMaxSyncFactor = 1.3;  // sync with scores <= 1 + this * f without

// The limits that this project sets itself, as ratios to the peer.
// bf16 has one where the machine has instructions for it.
std::optional<double> RequiredSpeedup(int64_t batch, Dtype dtype) {
  if (dtype == Dtype::kBF16) {
    return HasBf16Products(BestIsa()) ? std::optional<double>(3) : std::nullopt;
  }
  if (batch == 1) return 4;
  return batch <= 8 ? 3 : 2;
}

// What the peer computes in beside ours in `dtype`.
Dtype PeerDtype(Dtype dtype) {
  return TorchHasBf16Products() ? dtype : Dtype::kF32;
}

std::string_view Label(Dtype dtype) {
  return dtype == Dtype::kBF16 ? "bf16" : "float32";
}

TokenRows Prompts(const ModelConfig& config, int64_t batch, int64_t num_tokens) {
  const CounterRandom random(kSeed, 0);
  TokenRows prompts(static_cast<size_t>(batch));
  for (size_t row = 0; row < prompts.size(); ++row) {
    for (int64_t token = 0; token < num_tokens; ++token) {
      const double u = random.Uniform(row, static_cast<uint64_t>(token));
      prompts[row].push_back(static_cast<TokenId>(u * static_cast<double>(config.vocab_size)));
    }
  }
  return prompts;
}

// One batch size in one dtype, on both sides.
struct Row {
  int64_t batch = 0;
  Dtype dtype = Dtype::kF32;
  Measurement ours;
  Measurement theirs;
  double equal_share = 0;  // of greedy tokens; ties break differently
};

double EqualShare(const TokenRows& a, const TokenRows& b) {
  int64_t equal = 0;
  int64_t total = 0;
  for (size_t row = 0; row < std::min(a.size(), b.size()); ++row) {
    for (size_t i = 0; i < std::min(a[row].size(), b[row].size()); ++i) {
      equal += a[row][i] == b[row][i] ? 1 : 0;
      ++total;
    }
  }
  return total == 0 ? 0 : static_cast<double>(equal) / static_cast<double>(total);
}

class RolloutBench {
 public:
  RolloutBench(const RolloutBenchOptions& options, std::unique_ptr<BenchModel> model)
      : options_(options), model_(std::move(model)) {
    const auto add = [&](int64_t batch, Dtype dtype) {
      const std::string name = Concat("generate_", Label(dtype), "_batch_", batch);
      const auto speed = [&](const std::string& suffix) {
        return Measurement{.name = name + suffix,
                           .unit = "tokens/s",
                           .limit = std::nullopt,
                           .limit_kind = Limit::kAtLeast};
      };
      rows_.push_back(
          {.batch = batch, .dtype = dtype, .ours = speed(""), .theirs = speed("_transformers")});
    };
    for (const int64_t batch : options.batches) add(batch, Dtype::kF32);
    add(LargestBatch(), Dtype::kBF16);
  }

  Status Run() {
    PACE_RETURN_IF_ERROR(MakeLoops());
    if (options_.python) peer_ = TransformersPeer::Start(model_->folder, options_.num_threads);
    for (int64_t round = 0; round <= options_.repetitions; ++round) {
      // The first round warms both sides up and is not counted.
      PACE_RETURN_IF_ERROR(RunRound(round > 0));
    }
    return Status::Ok();
  }

  std::string Report() const {
    return BenchReport(
        "rollout", Measurements(), [&](JsonWriter& json) { WriteSettings(json); },
        [&](JsonWriter& json) {
          json.Put("peer", peer_.ok() ? (*peer_)->version() : peer_.status().message());
          json.Put("isa", IsaName(BestIsa()));
          json.Put("peer_of_bf16", Label(PeerDtype(Dtype::kBF16)));
          json.Key("greedy_tokens_equal_to_the_peer");
          json.BeginObject();
          for (const Row& row : rows_) json.Put(row.ours.name, row.equal_share);
          json.EndObject();
        });
  }

 private:
  int64_t LargestBatch() const {
    return *std::max_element(options_.batches.begin(), options_.batches.end());
  }

  Status MakeLoops() {
    const int64_t tokens = LargestBatch() * (options_.prompt_tokens + options_.new_tokens);
    const auto make = [&](Dtype dtype, bool score) {
      return RolloutLoop::Create(model_->config, model_->weights,
                                 {.dtype = dtype,
                                  .num_threads = options_.num_threads,
                                  .max_tokens = tokens,
                                  .score_prefixes = score});
    };
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      PACE_ASSIGN_OR_RETURN(loops_[dtype], make(dtype, false));
    }
    PACE_ASSIGN_OR_RETURN(scoring_loop_, make(Dtype::kF32, true));
    return Status::Ok();
  }

  Status RunRound(bool count) {
    for (Row& row : rows_) {
      const TokenRows prompts = Prompts(model_->config, row.batch, options_.prompt_tokens);
      const auto rate = [&](const Generation& generation) {
        return static_cast<double>(row.batch * options_.new_tokens) / generation.seconds;
      };
      PACE_ASSIGN_OR_RETURN(Generation ours,
                            loops_[row.dtype]->Generate(prompts, options_.new_tokens));
      if (count) row.ours.repetitions.push_back(rate(ours));
      if (!peer_.ok()) continue;
      PACE_ASSIGN_OR_RETURN(Generation theirs,
                            (*peer_)->Generate(prompts, options_.new_tokens, PeerDtype(row.dtype)));
      if (count) row.theirs.repetitions.push_back(rate(theirs));
      row.equal_share = EqualShare(ours.ids, theirs.ids);
    }
    PACE_RETURN_IF_ERROR(RunSync(count));
    return count ? MeasureLimit() : Status::Ok();
  }

  // Both sides hold their responses at once, and sync in turn.
  Status RunSync(bool count) {
    RolloutLoop& plain = *loops_[Dtype::kF32];
    RolloutLoop& scoring = *scoring_loop_;
    const TokenRows prompts = Prompts(model_->config, LargestBatch(), options_.prompt_tokens);
    const int64_t tokens = options_.new_tokens - 2;
    PACE_RETURN_IF_ERROR(plain.Hold(prompts, tokens, kSyncsPerRound));
    PACE_RETURN_IF_ERROR(scoring.Hold(prompts, tokens, kSyncsPerRound));
    for (int64_t i = 0; i < kSyncsPerRound; ++i) {
      PACE_ASSIGN_OR_RETURN(const SyncCost without, plain.Sync());
      PACE_ASSIGN_OR_RETURN(const SyncCost with, scoring.Sync());
      if (count) CountSync(without, with);
    }
    plain.Drop();
    scoring.Drop();
    return Status::Ok();
  }

  void CountSync(const SyncCost& without, const SyncCost& with) {
    sync_.repetitions.push_back(1e3 * without.seconds);
    scored_sync_.repetitions.push_back(1e3 * with.seconds);
    const double context = 0.5 * static_cast<double>(options_.prompt_tokens + options_.new_tokens);
    head_share_ =
        static_cast<double>(with.num_scored_rows) * HeadFlops(model_->config) /
        (static_cast<double>(with.num_reprefill_rows) * LayerFlops(model_->config, context));
  }

  Status MeasureLimit() {
    if (!peer_.ok()) return Status::Ok();
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      PACE_ASSIGN_OR_RETURN(const double limit, (*peer_)->GemmGigaflops(PeerDtype(dtype)));
      gemm_[dtype].repetitions.push_back(limit);
    }
    return Status::Ok();
  }

  std::vector<Measurement> Measurements() const {
    std::vector<Measurement> all;
    for (const Row& row : rows_) {
      all.push_back(row.ours);
      if (!peer_.ok()) continue;
      all.push_back(row.theirs);
      all.push_back(RatioOf(row.ours, row.theirs, row.ours.name + "_times_transformers", 0));
      all.back().limit_kind = Limit::kAtLeast;
      all.back().limit = RequiredSpeedup(row.batch, row.dtype);
      all.push_back(ShareOfLimit(row));
    }
    all.push_back(sync_);
    all.push_back(scored_sync_);
    all.push_back(RatioOf(scored_sync_, sync_, "sync_with_scores_over_without",
                          1 + kMaxSyncFactor * head_share_));
    for (const auto& [dtype, limit] : gemm_) {
      if (limit.repetitions.empty()) continue;
      all.push_back(limit);
      all.back().name = Concat("gemm_limit_", Label(dtype));
      all.back().unit = "GFLOP/s";
    }
    return all;
  }

  // Floating-point operations of the generation per second, of the limit.
  Measurement ShareOfLimit(const Row& row) const {
    const auto prompt = static_cast<double>(options_.prompt_tokens);
    const auto generated = static_cast<double>(options_.new_tokens);
    const double tokens = prompt + generated;
    const double per_token = 1e-9 *
                             (tokens * LayerFlops(model_->config, 0.5 * tokens) +
                              generated * HeadFlops(model_->config)) /
                             generated;
    Measurement share{
        .name = row.ours.name + "_share_of_gemm_limit", .unit = "ratio", .limit = std::nullopt};
    const std::vector<double>& limits = gemm_.at(row.dtype).repetitions;
    for (size_t i = 0; i < row.ours.repetitions.size(); ++i) {
      share.repetitions.push_back(row.ours.repetitions[i] * per_token / limits[i]);
    }
    return share;
  }

  void WriteSettings(JsonWriter& json) const {
    json.BeginObject();
    json.Put("model",
             options_.model.empty() ? std::string("qwen3 shape, random weights") : options_.model);
    json.Put("num_parameters", model_->config.num_parameters());
    json.Put("repetitions", options_.repetitions);
    json.Put("threads", options_.num_threads);
    json.Put("prompt_tokens", options_.prompt_tokens);
    json.Put("new_tokens", options_.new_tokens);
    json.Put("sync_head_over_rebuild_flops", head_share_);
    json.EndObject();
  }

  RolloutBenchOptions options_;
  std::unique_ptr<BenchModel> model_;
  std::vector<Row> rows_;
  std::map<Dtype, std::unique_ptr<RolloutLoop>> loops_;
  std::unique_ptr<RolloutLoop> scoring_loop_;
  Result<std::unique_ptr<TransformersPeer>> peer_ = Unavailable("not asked for");
  Measurement sync_{.name = "sync", .unit = "ms", .limit = std::nullopt};
  Measurement scored_sync_{.name = "sync_with_scores", .unit = "ms", .limit = std::nullopt};
  double head_share_ = 0;
  std::map<Dtype, Measurement> gemm_;
};

}  // namespace

Status RolloutBenchOptions::Validate() const {
  if (repetitions < 1 || repetitions > 1000) {
    return InvalidArgument("repetitions = ", repetitions, ": must be in [1, 1000]");
  }
  if (num_threads < 1 || prompt_tokens < 1 || new_tokens < 4 || batches.empty()) {
    return InvalidArgument("threads and prompt tokens must be at least 1, new tokens at least 4");
  }
  return Status::Ok();
}

Result<std::string> RunRolloutBench(const RolloutBenchOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<BenchModel> model, BenchModel::Load(options.model));
  RolloutBench bench(options, std::move(model));
  PACE_RETURN_IF_ERROR(bench.Run());
  return bench.Report();
}

}  // namespace pace
