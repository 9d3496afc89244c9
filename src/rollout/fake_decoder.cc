#include "rollout/fake_decoder.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/check.h"
#include "rollout/block_pool.h"

namespace pace {
namespace {

Status Defect(const std::string& what) {
  return DataLoss("fake decoder: ", what);
}

}  // namespace

Result<PassResult> FakeDecoder::Run(const Pass& pass) {
  on_pass_(num_passes_++);
  PACE_RETURN_IF_ERROR(CheckWriters(pass));
  const SpeculativePass before = std::exchange(ahead_, {});
  const std::vector<int32_t> found = before.Find(pass);
  const auto num_found = std::ranges::count_if(found, [](int32_t row) { return row >= 0; });
  Result<PassResult> result = Compute(num_found > 0 ? WithoutFound(pass, found) : pass);
  if (!result.ok()) return result;
  if (std::exchange(fails_next_, false)) {
    for (const Chunk& chunk : pass.chunks) {
      for (const BlockId block : chunk.blocks) At(block, 0) = {};
    }
    return Unavailable("the device failed");
  }
  num_found_ += num_found;
  if (num_found > 0) result = JoinFound(pass, found, ahead_answers_, *result);
  if (options_.speculates) PACE_RETURN_IF_ERROR(RunAhead(pass, *result));
  return result;
}

Status FakeDecoder::RunAhead(const Pass& pass, const PassResult& result) {
  ahead_ = SpeculativePass(pass);
  ahead_.SetTokens(result.samples, config_.eos);
  PACE_RETURN_IF_ERROR(CheckWriters(ahead_.pass()));
  PACE_ASSIGN_OR_RETURN(PassResult answers, Compute(ahead_.pass()));
  ahead_answers_ = std::move(answers.samples);
  return Status::Ok();
}

Result<PassResult> FakeDecoder::Compute(const Pass& pass) {
  std::vector<uint64_t> hashes;  // by row
  for (const Chunk& chunk : pass.chunks) PACE_RETURN_IF_ERROR(RunChunk(pass, chunk, hashes));
  if (hashes.size() != pass.tokens.size()) return Defect("tokens without a chunk");
  PassResult result;
  KeepStates(pass);
  for (const SampleRequest& sample : pass.samples) {
    result.samples.push_back(network_.Draw(hashes.at(static_cast<size_t>(sample.row)), weights_,
                                           sample.options, sample.key));
  }
  for (const ScoreRequest& score : pass.scores) {
    result.logprobs.push_back(FakeNetwork::LogProb(hashes.at(static_cast<size_t>(score.row)),
                                                   weights_, score.scale, score.target));
  }
  return result;
}

void FakeDecoder::KeepStates(const Pass& pass) {
  std::set<int64_t> sampled;
  for (const SampleRequest& sample : pass.samples) sampled.insert(sample.row);
  int64_t row = 0;
  for (const Chunk& chunk : pass.chunks) {
    for (int64_t i = 0; i < chunk.num_tokens; ++i, ++row) {
      At(chunk, chunk.start + i).is_kept = !sampled.contains(row);
    }
  }
}

Result<std::vector<float>> FakeDecoder::RunCached(std::span<const ScoreRequest> scores) {
  if (std::exchange(fails_next_, false)) return Unavailable("the device failed");
  std::vector<float> logprobs;
  for (const ScoreRequest& score : scores) {
    const Cell& cell = cells_.at(static_cast<size_t>(score.row));
    if (!cell.is_kept || cell.weights != weights_) {
      return Defect(Concat("place ", score.row, ": no state is kept there, or one of weights ",
                           cell.weights, ", not ", weights_));
    }
    logprobs.push_back(FakeNetwork::LogProb(cell.hash, weights_, score.scale, score.target));
  }
  return logprobs;
}

void FakeDecoder::CopyBlocks(std::span<const BlockCopy> copies) {
  std::set<BlockId> targets;
  for (const BlockCopy& copy : copies) {
    PACE_CHECK(targets.insert(copy.to).second, "block ", copy.to, " is copied to twice");
  }
  for (const BlockCopy& copy : copies) {
    PACE_CHECK(!targets.contains(copy.from), "block ", copy.from, " is source and target");
    for (int64_t i = 0; i < kBlockTokens; ++i) {
      At(copy.to, i) = At(copy.from, i);
      At(copy.to, i).is_kept = false;
    }
  }
}

// A block that a chunk writes may be named by no other chunk.
Status FakeDecoder::CheckWriters(const Pass& pass) {
  uses_.assign(uses_.size(), {});
  for (const Chunk& chunk : pass.chunks) {
    const int64_t num_tokens = chunk.start + chunk.num_tokens;
    const int64_t with_room = options_.speculates ? num_tokens + 1 : num_tokens;
    if (chunk.num_tokens < 1 || std::ssize(chunk.blocks) < BlocksOf(num_tokens) ||
        std::ssize(chunk.blocks) > BlocksOf(with_room)) {
      return Defect(Concat("a chunk of ", chunk.num_tokens, " tokens after ", chunk.start, " with ",
                           chunk.blocks.size(), " blocks"));
    }
    for (size_t i = 0; i < chunk.blocks.size(); ++i) {
      Use& use = uses_.at(static_cast<size_t>(chunk.blocks[i]));
      ++use.num_chunks;
      use.written = use.written || static_cast<int64_t>(i) >= chunk.start / kBlockTokens;
      if (use.written && use.num_chunks > 1) {
        return Defect(Concat("block ", chunk.blocks[i], " is shared and written"));
      }
    }
  }
  return Status::Ok();
}

Status FakeDecoder::RunChunk(const Pass& pass, const Chunk& chunk, std::vector<uint64_t>& hashes) {
  uint64_t hash = 0;
  for (int64_t position = 0; position < chunk.start; ++position) {
    const Cell& cell = At(chunk, position);
    hash = FakeNetwork::Extend(hash, cell.token);
    const bool is_stale = options_.check_weights && cell.weights != weights_;
    if (cell.position != position || cell.hash != hash || is_stale) {
      return Defect(Concat("position ", position, " of ", chunk.start, " is ",
                           cell.position == position ? "here" : "elsewhere", " under weights ",
                           cell.weights, ", not ", weights_));
    }
  }
  for (int64_t i = 0; i < chunk.num_tokens; ++i) {
    const TokenId token = pass.tokens.at(hashes.size());
    hash = FakeNetwork::Extend(hash, token);
    At(chunk, chunk.start + i) = {chunk.start + i, token, hash, weights_};
    hashes.push_back(hash);
  }
  return Status::Ok();
}

}  // namespace pace
