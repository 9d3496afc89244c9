// Decoder: inference with one network on one device, over a paged KV cache.
//
// It knows tokens, blocks and rows, not requests, groups or versions. The cache has num_blocks
// blocks of kBlockTokens tokens; the caller decides which sequence owns which block. A forward
// pass runs new tokens of several sequences, adds their keys and values to the cache, and
// samples from or scores some of the rows. The code above this interface is the same for every
// device.
//
// The order of computation within a row depends on its own context alone. Its bits therefore do
// not depend on the other rows of the pass or on how a sequence was cut into chunks: prefill,
// re-prefill and decode agree to the bit. A device that cannot promise this returns false from
// deterministic().
//
// Thread-safety: one thread at a time, except for Prepare, which may run concurrently with Run:
// a trainer's thread prepares, the rollout thread installs.
#ifndef PACE_MODEL_DECODER_H_
#define PACE_MODEL_DECODER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "core/token_id.h"
#include "model/model_config.h"
#include "model/quantization.h"
#include "model/sampling.h"
#include "model/weight_set.h"

namespace pace {

inline constexpr int64_t kBlockTokens = 16;

using BlockId = int32_t;

// Consecutive new tokens of one sequence.
struct Chunk {
  int64_t start = 0;       // its tokens already in the cache
  int64_t num_tokens = 0;  // new ones, at least 1
  // Blocks of tokens [0, start + num_tokens), in order, and possibly more for the next token.
  // Blocks from the first new token on must belong to this sequence alone.
  std::span<const BlockId> blocks;
};

// Sample the token that follows a row.
struct SampleRequest {
  int64_t row = 0;
  SamplingOptions options;
  SampleKey key;
};

// The log-probability of a token that follows a row.
struct ScoreRequest {
  int64_t row = 0;
  TokenId target = 0;
  double scale = 1.0;  // SamplingOptions::scale()
};

struct Pass {
  std::vector<TokenId> tokens;  // of all chunks in order: the rows
  std::vector<Chunk> chunks;
  std::vector<SampleRequest> samples;
  std::vector<ScoreRequest> scores;
};

struct PassResult {
  std::vector<Sampled> samples;  // in the order of the requests
  std::vector<float> logprobs;   // of the scores, in the order of the requests
};

struct BlockCopy {
  BlockId from = 0;
  BlockId to = 0;
};

// Weights in a device's own layout.
class DecoderWeights {
 public:
  virtual ~DecoderWeights() = default;
};

class Decoder {
 public:
  virtual ~Decoder() = default;

  virtual const ModelConfig& config() const = 0;
  virtual int64_t num_blocks() const = 0;
  virtual bool deterministic() const = 0;
  // Whether it runs speculative passes for chunks that have room for the next token
  // (speculative_pass.h).
  virtual bool speculates() const { return false; }

  // Lays weights out for this device. Thread-safe.
  virtual Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet& weights) const = 0;
  // The next pass uses these. The cache still holds values of the old weights.
  virtual void Install(std::shared_ptr<const DecoderWeights> weights) = 0;

  // REQUIRES: weights installed; ids, rows and blocks in range.
  // An error (the device failed) leaves the cache of these chunks undefined.
  virtual Result<PassResult> Run(const Pass& pass) = 0;

  // Copies whole blocks, all layers.
  virtual void CopyBlocks(std::span<const BlockCopy> copies) = 0;

  // With DecoderOptions::cache_states a pass caches the last hidden state of every row that it
  // does not sample from, at the row's slot in the KV cache, until another row overwrites it.
  // ScoreCached returns what Run would have returned for ScoreRequests of those rows; `row` is
  // a slot (SlotOf). REQUIRES: cache_states; states cached under the installed weights
  Result<std::vector<float>> ScoreCached(std::span<const ScoreRequest> scores);
  // Total time of all calls of ScoreCached.
  Seconds scoring_time() const { return scoring_time_; }

 private:
  virtual Result<std::vector<float>> RunCached(std::span<const ScoreRequest> scores) = 0;
  // Waits for speculative work, so that it is not charged to the caller's timing.
  virtual void WaitForSpeculation() {}

  Seconds scoring_time_{0};
};

// The KV slot of a token of the sequence that owns these blocks.
inline int64_t SlotOf(std::span<const BlockId> blocks, int64_t token) {
  return int64_t{blocks[static_cast<size_t>(token / kBlockTokens)]} * kBlockTokens +
         token % kBlockTokens;
}

struct DecoderOptions {
  // F32 or BF16: weights and cache; sums are float32 in both.
  Dtype dtype = Dtype::kF32;
  // How Prepare rounds weights. A GPU stores them in eight bits where it reads them for few rows.
  Quantization quantization = Quantization::kNone;
  // Size of the cache.
  int64_t num_blocks = 0;
  // Threads that compute, the caller's included.
  int64_t num_threads = 1;
  // For ScoreCached: costs hidden_size elements per token of the cache.
  bool cache_states = false;

  [[nodiscard]] Status Validate() const;
};

// Bytes of one block of the KV cache, all layers.
int64_t BlockBytes(const ModelConfig& config, Dtype dtype);

// For decoders: aborts if a pass breaks what Run or ScoreCached require.
void CheckPass(const Pass& pass, const ModelConfig& config, int64_t num_blocks);
void CheckCached(std::span<const ScoreRequest> scores, const ModelConfig& config,
                 int64_t num_blocks);

}  // namespace pace

#endif  // PACE_MODEL_DECODER_H_
