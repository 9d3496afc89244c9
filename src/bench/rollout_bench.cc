// `pace bench rollout`: generation speed beside `transformers` generate() on the same
// weights, prompts and threads, in the same rounds.
//
// Also what a weight sync costs in mid-response, with and without prefix scores, and the
// speed against the machine's limit for matrix products.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "bench/bench_model.h"
#include "bench/benches.h"
#include "bench/peer.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/random.h"
#include "core/status.h"
#include "core/token_id.h"
#include "model/cpu/cpu_decoder.h"
#include "model/cpu/kernels/isa.h"
#include "model/decoder.h"
#include "model/model_config.h"
#include "model/weight_set.h"
#include "rollout/engine_core.h"

namespace pace {
namespace {

// Prefill and re-prefill in large passes: nothing else waits here.
constexpr int64_t kPassTokens = 2048;
// What a response may generate while all others are re-prefilled.
constexpr int64_t kTokensPerSync = 16;

using TokenRows = std::vector<std::vector<TokenId>>;

struct Generation {
  double seconds = 0;
  TokenRows ids;  // the new ones
};

struct RolloutLoopOptions {
  Dtype dtype = Dtype::kF32;
  int64_t num_threads = 1;
  int64_t max_tokens = 0;  // room for all sequences together
  bool score_prefixes = false;
};

// What a sync cost, from the swap until every response had sampled again.
struct SyncCost {
  double seconds = 0;
  int64_t num_reprefill_rows = 0;
  int64_t num_scored_rows = 0;
};

// An engine that generates whole responses, or holds them in mid-response for weight syncs.
class RolloutLoop {
 public:
  static Result<std::unique_ptr<RolloutLoop>> Create(const ModelConfig& config,
                                                     const WeightSet& weights,
                                                     const RolloutLoopOptions& options) {
    DecoderOptions decoder_options;
    decoder_options.dtype = options.dtype;
    decoder_options.num_threads = options.num_threads;
    // Ample: a sequence leaves part of its last block unused.
    decoder_options.num_blocks = 2 * options.max_tokens / kBlockTokens + 256;
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder,
                          CreateCpuDecoder(config, decoder_options));
    PACE_ASSIGN_OR_RETURN(std::shared_ptr<const DecoderWeights> prepared,
                          decoder->Prepare(weights));
    RolloutOptions engine_options;
    engine_options.score_prefixes = options.score_prefixes;
    engine_options.max_pass_tokens = kPassTokens;
    auto loop = std::unique_ptr<RolloutLoop>(new RolloutLoop(std::move(decoder), engine_options));
    loop->weights_ = prepared;
    PACE_RETURN_IF_ERROR(loop->engine_.Sync(loop->version_, loop->weights_));
    return loop;
  }

  // Greedy continuations, timed from the first request to the last token.
  Result<Generation> Generate(const TokenRows& prompts, int64_t new_tokens) {
    const int64_t first = next_group_;
    Generation generation{.seconds = 0, .ids = TokenRows(prompts.size())};
    const WallClock clock;
    PACE_RETURN_IF_ERROR(Submit(prompts, new_tokens));
    while (engine_.busy()) {
      PACE_ASSIGN_OR_RETURN(StepReport step, engine_.Step());
      for (const FinishedResponse& done : step.finished) {
        std::vector<TokenId>& ids =
            generation.ids[static_cast<size_t>(done.id.group.value() - first)];
        for (const TokenRecord& token : done.response.tokens) ids.push_back(token.id);
      }
    }
    generation.seconds = clock.Now().count();
    return generation;
  }

  // Generates until every response has `new_tokens` and room for `num_syncs` more.
  Status Hold(const TokenRows& prompts, int64_t new_tokens, int64_t num_syncs) {
    for (size_t i = 0; i < prompts.size(); ++i) {
      held_.push_back({GroupId(next_group_ + static_cast<int64_t>(i)), 0});
    }
    // While the last one catches up the others continue, a token per pass; none may
    // end before the last sync.
    PACE_RETURN_IF_ERROR(Submit(prompts, new_tokens + num_syncs * kTokensPerSync));
    for (size_t i = 0; i < held_.size();) {
      const PartialResponse* response = engine_.Peek(held_[i]);
      PACE_CHECK(response != nullptr, "a response ended before the sync");
      if (static_cast<int64_t>(response->tokens.size()) >= new_tokens) {
        ++i;
        continue;
      }
      PACE_RETURN_IF_ERROR(engine_.Step().status());
    }
    return Status::Ok();
  }

  // Syncs under the responses held; each generates one token.
  Result<SyncCost> Sync() {
    SyncCost cost;
    std::set<MemberId> waiting(held_.begin(), held_.end());
    version_ = version_.Next();
    const WallClock clock;
    PACE_RETURN_IF_ERROR(engine_.Sync(version_, weights_));
    while (!waiting.empty()) {
      PACE_CHECK(engine_.busy(), "a response ended before the sync");
      PACE_ASSIGN_OR_RETURN(const StepReport step, engine_.Step());
      for (const MemberId& id : step.sampled) waiting.erase(id);
      cost.num_reprefill_rows += step.num_reprefill_rows;
      cost.num_scored_rows += step.num_scored_rows;
    }
    cost.seconds = clock.Now().count();
    return cost;
  }

  void Drop() {
    for (const MemberId& id : held_) (void)engine_.Cancel(id.group);
    held_.clear();
  }

 private:
  RolloutLoop(std::unique_ptr<Decoder> decoder, const RolloutOptions& options)
      : engine_(std::move(decoder), std::nullopt, options) {}
  Status Submit(const TokenRows& prompts, int64_t max_tokens) {
    for (const std::vector<TokenId>& prompt : prompts) {
      GroupRequest request;
      request.group = GroupId(next_group_++);
      request.prompt_tokens = prompt;
      request.sampling.temperature = 0;
      request.stop.max_tokens = max_tokens;
      PACE_RETURN_IF_ERROR(engine_.Submit(std::move(request)));
    }
    return Status::Ok();
  }

  EngineCore engine_;
  std::shared_ptr<const DecoderWeights> weights_;
  PolicyVersion version_;
  int64_t next_group_ = 0;
  std::vector<MemberId> held_;
};

constexpr uint64_t kRolloutSeed = 20261115;
constexpr int64_t kPromptTokens = 32;
constexpr int64_t kNewTokens = 128;
constexpr int64_t kBatches[] = {1, 8, 64};
constexpr int64_t kLargestBatch = 64;
constexpr int64_t kGemmSize = 2048;  // the matrices of the machine's limit
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

// The dtype of the peer when ours is `dtype`.
Dtype PeerDtype(Dtype dtype) {
  return TorchHasBf16Products() ? dtype : Dtype::kF32;
}

std::string_view Label(Dtype dtype) {
  return dtype == Dtype::kBF16 ? "bf16" : "float32";
}
std::string_view TorchName(Dtype dtype) {
  return dtype == Dtype::kBF16 ? "bfloat16" : "float32";
}

TokenRows Prompts(const ModelConfig& config, int64_t batch) {
  const CounterRandom random(kRolloutSeed, 0);
  TokenRows prompts(static_cast<size_t>(batch));
  for (size_t row = 0; row < prompts.size(); ++row) {
    for (int64_t token = 0; token < kPromptTokens; ++token) {
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

// `transformers` with the model in F32 and BF16.
Result<Peer> StartPeer(const std::string& folder, int64_t num_threads) {
  PACE_ASSIGN_OR_RETURN(Peer peer, Peer::Start("transformers_peer.py"));
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
    std::string request;
    JsonWriter json(request);
    json.BeginObject();
    json.Put("load", folder);
    json.Put("dtype", TorchName(dtype));
    json.Put("threads", num_threads);
    json.EndObject();
    PACE_RETURN_IF_ERROR(peer.Ask(request).status());
  }
  return peer;
}

Result<Generation> GenerateByPeer(Peer& peer, const TokenRows& prompts, Dtype dtype) {
  std::string request;
  JsonWriter json(request);
  json.BeginObject();
  json.Key("generate");
  json.BeginArray();
  for (const std::vector<TokenId>& row : prompts) {
    json.BeginArray();
    for (const TokenId id : row) json.Value(id);
    json.EndArray();
  }
  json.EndArray();
  json.Put("new_tokens", kNewTokens);
  json.Put("dtype", TorchName(dtype));
  json.EndObject();
  PACE_ASSIGN_OR_RETURN(const PeerAnswer answer, peer.Ask(request, {"seconds"}));
  Generation generation{.seconds = answer.numbers.at("seconds"), .ids = {}};
  for (const std::vector<double>& row : answer.rows) {
    std::vector<TokenId>& ids = generation.ids.emplace_back();
    for (const double id : row) ids.push_back(static_cast<TokenId>(id));
  }
  return generation;
}

class RolloutBench {
 public:
  RolloutBench(const BenchOptions& options, std::unique_ptr<BenchModel> model)
      : options_(options), model_(std::move(model)) {
    for (const int64_t batch : kBatches) AddRow(batch, Dtype::kF32);
    AddRow(kLargestBatch, Dtype::kBF16);
  }

  Status Run() {
    PACE_RETURN_IF_ERROR(MakeLoops());
    if (options_.python) peer_ = StartPeer(model_->folder, options_.num_threads);
    for (int64_t round = 0; round <= options_.repetitions; ++round) {
      // The first round warms both sides up and is not counted.
      PACE_RETURN_IF_ERROR(RunRound(round > 0));
    }
    return Status::Ok();
  }

  void Report(BenchReport& report) const {
    report.measurements = Measurements();
    JsonWriter& settings = report.settings();
    settings.Put("model", options_.model.empty() ? std::string("qwen3 shape, random weights")
                                                 : options_.model);
    settings.Put("num_parameters", model_->config.num_parameters());
    settings.Put("repetitions", options_.repetitions);
    settings.Put("threads", options_.num_threads);
    settings.Put("prompt_tokens", kPromptTokens);
    settings.Put("new_tokens", kNewTokens);
    settings.Put("sync_head_over_rebuild_flops", head_share_);
    JsonWriter& json = report.more();
    json.Put("peer", DescriptionOf(peer_));
    json.Put("isa", IsaName(BestIsa()));
    json.Put("peer_of_bf16", Label(PeerDtype(Dtype::kBF16)));
    json.Key("greedy_tokens_equal_to_the_peer");
    json.BeginObject();
    for (const Row& row : rows_) json.Put(row.ours.name, row.equal_share);
    json.EndObject();
  }

 private:
  void AddRow(int64_t batch, Dtype dtype) {
    const std::string name = Concat("generate_", Label(dtype), "_batch_", batch);
    rows_.push_back({.batch = batch,
                     .dtype = dtype,
                     .ours = Rate(name, "tokens/s"),
                     .theirs = Rate(name + "_transformers", "tokens/s")});
  }

  Status MakeLoops() {
    const int64_t tokens = kLargestBatch * (kPromptTokens + kNewTokens);
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
      const TokenRows prompts = Prompts(model_->config, row.batch);
      const auto rate = [&](const Generation& generation) {
        return static_cast<double>(row.batch * kNewTokens) / generation.seconds;
      };
      PACE_ASSIGN_OR_RETURN(Generation ours, loops_[row.dtype]->Generate(prompts, kNewTokens));
      if (count) row.ours.Add(rate(ours));
      if (!peer_.ok()) continue;
      PACE_ASSIGN_OR_RETURN(Generation theirs,
                            GenerateByPeer(*peer_, prompts, PeerDtype(row.dtype)));
      if (count) row.theirs.Add(rate(theirs));
      row.equal_share = EqualShare(ours.ids, theirs.ids);
    }
    PACE_RETURN_IF_ERROR(RunSync(count));
    return count ? MeasureLimit() : Status::Ok();
  }

  // Both sides hold their responses at once, and sync in turn.
  Status RunSync(bool count) {
    RolloutLoop& plain = *loops_[Dtype::kF32];
    RolloutLoop& scoring = *scoring_loop_;
    const TokenRows prompts = Prompts(model_->config, kLargestBatch);
    const int64_t tokens = kNewTokens - 2;
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
    sync_.Add(1e3 * without.seconds);
    scored_sync_.Add(1e3 * with.seconds);
    const double context = 0.5 * static_cast<double>(kPromptTokens + kNewTokens);
    head_share_ =
        static_cast<double>(with.num_scored_rows) * HeadFlops(model_->config) /
        (static_cast<double>(with.num_reprefill_rows) * LayerFlops(model_->config, context));
  }

  Status MeasureLimit() {
    if (!peer_.ok()) return Status::Ok();
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      PACE_ASSIGN_OR_RETURN(
          const PeerAnswer answer,
          peer_->Ask(Concat("{\"gemm\": [", kGemmSize, ", ", kGemmSize, ", ", kGemmSize,
                            "], \"dtype\": \"", TorchName(PeerDtype(dtype)), "\"}"),
                     {"gflops"}));
      gemm_[dtype].Add(answer.numbers.at("gflops"));
    }
    return Status::Ok();
  }

  std::vector<Measurement> Measurements() const {
    std::vector<Measurement> all;
    for (const Row& row : rows_) {
      all.push_back(row.ours);
      if (!peer_.ok()) continue;
      all.push_back(row.theirs);
      all.push_back(RatioOf(row.ours, row.theirs, row.ours.name + "_times_transformers",
                            RequiredSpeedup(row.batch, row.dtype), Limit::kAtLeast));
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
    const auto prompt = static_cast<double>(kPromptTokens);
    const auto generated = static_cast<double>(kNewTokens);
    const double tokens = prompt + generated;
    const double per_token = 1e-9 *
                             (tokens * LayerFlops(model_->config, 0.5 * tokens) +
                              generated * HeadFlops(model_->config)) /
                             generated;
    Measurement share{.name = row.ours.name + "_share_of_gemm_limit", .unit = "ratio"};
    const std::vector<double>& limits = gemm_.at(row.dtype).repetitions;
    for (size_t i = 0; i < row.ours.repetitions.size(); ++i) {
      share.Add(row.ours.repetitions[i] * per_token / limits[i]);
    }
    return share;
  }

  BenchOptions options_;
  std::unique_ptr<BenchModel> model_;
  std::vector<Row> rows_;
  std::map<Dtype, std::unique_ptr<RolloutLoop>> loops_;
  std::unique_ptr<RolloutLoop> scoring_loop_;
  Result<Peer> peer_ = Unavailable("not asked for");
  Measurement sync_{.name = "sync", .unit = "ms"};
  Measurement scored_sync_{.name = "sync_with_scores", .unit = "ms"};
  double head_share_ = 0;
  std::map<Dtype, Measurement> gemm_;
};

}  // namespace

Status RunRolloutBench(const BenchOptions& options, BenchReport& report) {
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<BenchModel> model, BenchModel::Load(options.model));
  RolloutBench bench(options, std::move(model));
  PACE_RETURN_IF_ERROR(bench.Run());
  bench.Report(report);
  return Status::Ok();
}

}  // namespace pace
