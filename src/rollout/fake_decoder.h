// FakeDecoder, for tests: a decoder whose "network" is a hash of the weights and
// of the exact tokens that it finds in the cache.
//
// Every cached position holds the hash of the sequence up to it. A pass reads
// its context back through the block table and refuses, with an error, what the
// sequence did not put there itself: a wrong, stale or overwritten block, a copy
// that came too early, a block that two sequences write. So a mistake of the
// scheduler is either caught here or changes a token. States are kept of just the
// rows of which Decoder promises it. It may run ahead, and then writes what it
// should not have been asked for like a device that does.
// Thread-safety: as Decoder.
#ifndef PACE_ROLLOUT_FAKE_DECODER_H_
#define PACE_ROLLOUT_FAKE_DECODER_H_

#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "model/decoder.h"
#include "model/sampling.h"
#include "model/speculative_pass.h"

namespace pace {

// Next tokens and log-probabilities as hashes. A sequence is its hash, extended token by token;
// weights are a number. Equal sequences under equal weights give equal rows, and nothing else does.
class FakeNetwork {
 public:
  explicit FakeNetwork(int64_t vocab_size) : vocab_size_(vocab_size) {}

  static uint64_t Extend(uint64_t hash, TokenId token) {
    return Mix(hash, static_cast<uint64_t>(token) + 1);
  }
  static float LogProb(uint64_t hash, uint64_t weights, double scale, TokenId target) {
    const uint64_t bits =
        Mix(Mix(Mix(hash, weights), std::bit_cast<uint64_t>(scale)), static_cast<uint64_t>(target));
    return -0.001f - static_cast<float>(bits % 100000) * 5e-5f;
  }
  Sampled Draw(uint64_t hash, uint64_t weights, const SamplingOptions& options,
               const SampleKey& key) const {
    uint64_t bits = Mix(Mix(hash, weights), std::bit_cast<uint64_t>(options.temperature));
    if (!options.greedy()) {
      bits = Mix(Mix(bits, key.seed), static_cast<uint64_t>(key.prompt));
      bits = Mix(Mix(bits, static_cast<uint64_t>(key.response)), static_cast<uint64_t>(key.token));
    }
    const auto token = static_cast<TokenId>(bits % static_cast<uint64_t>(vocab_size_));
    const float logprob = LogProb(hash, weights, options.scale(), token);
    return {.token = token,
            .logprob = logprob,
            .sampled_logprob = options.truncated() ? logprob / 2 : logprob};
  }

 private:
  static uint64_t Mix(uint64_t a, uint64_t b) {
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  int64_t vocab_size_;
};

class FakeDecoder final : public Decoder {
 public:
  struct Options {
    int64_t vocab_size = 13;
    int64_t max_positions = 1 << 20;
    int64_t num_blocks = 64;
    bool check_weights = true;  // off for SyncMode::kKeep
    bool speculates = false;
  };
  struct Weights final : DecoderWeights {
    explicit Weights(uint64_t given) : number(given) {}
    uint64_t number;
  };

  explicit FakeDecoder(const Options& options)
      : options_(options),
        network_(options.vocab_size),
        cells_(static_cast<size_t>(options.num_blocks * kBlockTokens)),
        uses_(static_cast<size_t>(options.num_blocks)) {
    config_.vocab_size = options.vocab_size;
    config_.max_positions = options.max_positions;
  }

  const ModelConfig& config() const override { return config_; }
  int64_t num_blocks() const override { return options_.num_blocks; }
  bool deterministic() const override { return true; }
  bool speculates() const override { return options_.speculates; }
  // Numbers them 0, 1, 2, ... as they come.
  Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet&) const override {
    return std::shared_ptr<const DecoderWeights>(std::make_shared<Weights>(num_prepared_++));
  }
  void Install(std::shared_ptr<const DecoderWeights> weights) override {
    weights_ = static_cast<const Weights&>(*weights).number;
    ahead_ = {};
  }
  // The next pass fails and ruins the blocks it names.
  void FailNext() { fails_next_ = true; }
  // Called at the start of every pass with its number, 0 first.
  void OnPass(std::function<void(int64_t)> hook) { on_pass_ = std::move(hook); }

  Result<PassResult> Run(const Pass& pass) override;
  void CopyBlocks(std::span<const BlockCopy> copies) override;
  // Rows that were asked for when they had been run.
  int64_t num_found() const { return num_found_; }

 private:
  struct Cell {
    std::optional<int64_t> position;
    TokenId token = 0;
    uint64_t hash = 0;
    uint64_t weights = 0;
    bool is_kept = false;
  };

  struct Use {
    int64_t num_chunks = 0;
    bool written = false;
  };

  Cell& At(BlockId block, int64_t offset) {
    return cells_.at(static_cast<size_t>(block * kBlockTokens + offset));
  }
  Cell& At(const Chunk& chunk, int64_t position) {
    return At(chunk.blocks[static_cast<size_t>(position / kBlockTokens)], position % kBlockTokens);
  }

  Result<std::vector<float>> RunCached(std::span<const ScoreRequest> scores) override;
  Result<PassResult> Compute(const Pass& pass);
  Status RunAhead(const Pass& pass, const PassResult& result);
  void KeepStates(const Pass& pass);
  Status CheckWriters(const Pass& pass);
  Status RunChunk(const Pass& pass, const Chunk& chunk, std::vector<uint64_t>& hashes);

  const Options options_;
  const FakeNetwork network_;
  ModelConfig config_;
  std::vector<Cell> cells_;
  std::vector<Use> uses_;  // of the present pass, by block
  uint64_t weights_ = 0;
  bool fails_next_ = false;
  int64_t num_passes_ = 0;
  SpeculativePass ahead_;
  std::vector<Sampled> ahead_answers_;
  int64_t num_found_ = 0;
  std::function<void(int64_t)> on_pass_ = [](int64_t) {};
  mutable std::atomic<uint64_t> num_prepared_{0};
};

}  // namespace pace

#endif  // PACE_ROLLOUT_FAKE_DECODER_H_
