#include "model/decoder.h"

#include "core/check.h"

namespace pace {
namespace {

void CheckToken(TokenId token, const ModelConfig& config) {
  PACE_CHECK(token >= 0 && token < config.vocab_size, "token ", token, " of ", config.vocab_size);
}

}  // namespace

void CheckPass(const Pass& pass, const ModelConfig& config, int64_t num_blocks) {
  int64_t num_rows = 0;
  for (const Chunk& chunk : pass.chunks) {
    PACE_CHECK(chunk.start >= 0 && chunk.num_tokens >= 1, chunk.start, ", ", chunk.num_tokens);
    num_rows += chunk.num_tokens;
    const int64_t num_tokens = chunk.start + chunk.num_tokens;
    PACE_CHECK(static_cast<int64_t>(chunk.blocks.size()) * kBlockTokens >= num_tokens,
               chunk.blocks.size(), " blocks for ", num_tokens, " tokens");
    for (const BlockId block : chunk.blocks) {
      PACE_CHECK(block >= 0 && block < num_blocks, "block ", block, " of ", num_blocks);
    }
  }
  PACE_CHECK(num_rows == static_cast<int64_t>(pass.tokens.size()), num_rows, " rows, ",
             pass.tokens.size(), " tokens");
  for (const TokenId token : pass.tokens) CheckToken(token, config);
  for (const SampleRequest& sample : pass.samples) {
    PACE_CHECK(sample.row >= 0 && sample.row < num_rows, "row ", sample.row, " of ", num_rows);
  }
  for (const ScoreRequest& score : pass.scores) {
    PACE_CHECK(score.row >= 0 && score.row < num_rows, "row ", score.row, " of ", num_rows);
    CheckToken(score.target, config);
  }
}

void CheckCached(std::span<const ScoreRequest> scores, const ModelConfig& config,
                 int64_t num_blocks) {
  for (const ScoreRequest& score : scores) {
    PACE_CHECK(score.row >= 0 && score.row < num_blocks * kBlockTokens, "slot ", score.row, " of ",
               num_blocks, " blocks");
    CheckToken(score.target, config);
  }
}

Result<std::vector<float>> Decoder::ScoreCached(std::span<const ScoreRequest> scores) {
  if (scores.empty()) return std::vector<float>();
  WaitForSpeculation();
  const WallClock clock;
  Result<std::vector<float>> logprobs = RunCached(scores);
  scoring_time_ += clock.Now();
  return logprobs;
}

int64_t BlockBytes(const ModelConfig& config, Dtype dtype) {
  // Keys of a block are transposed, values are rows of a whole number of vectors.
  constexpr int64_t kLanes = 16;
  const int64_t padded = (config.head_dim + kLanes - 1) / kLanes * kLanes;
  const int64_t head_elements = (config.head_dim + padded) * kBlockTokens;
  return config.num_layers * config.num_kv_heads * head_elements * BitsPerElement(dtype) / 8;
}

Status DecoderOptions::Validate() const {
  if (dtype != Dtype::kF32 && dtype != Dtype::kBF16) {
    return InvalidArgument("dtype = ", DtypeName(dtype), ": must be F32 or BF16");
  }
  if (num_blocks < 1) {
    return InvalidArgument("num_blocks = ", num_blocks, ": must be >= 1 (a block holds ",
                           kBlockTokens, " tokens)");
  }
  if (num_threads < 1 || num_threads > 1024) {
    return InvalidArgument("num_threads = ", num_threads, ": must be from 1 to 1024");
  }
  return Status::Ok();
}

}  // namespace pace
