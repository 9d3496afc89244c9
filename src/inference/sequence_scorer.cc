#include "inference/sequence_scorer.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pace {

SequenceScorer::SequenceScorer(Decoder& decoder, int64_t max_pass_tokens)
    : decoder_(decoder), max_pass_tokens_(max_pass_tokens) {
  PACE_CHECK(max_pass_tokens > 0, "max_pass_tokens = ", max_pass_tokens);
  for (int64_t block = decoder.num_blocks(); block-- > 0;) {
    free_blocks_.push_back(static_cast<BlockId>(block));
  }
}

int64_t SequenceScorer::NumBlocks(int64_t num_tokens) {
  return (num_tokens + kBlockTokens - 1) / kBlockTokens;
}

Status SequenceScorer::Submit(std::vector<TokenId> ids) {
  const ModelConfig& config = decoder_.config();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= config.vocab_size) {
      return InvalidArgument("ids[", i, "] = ", ids[i], ": must be an id of the vocabulary, 0 to ",
                             config.vocab_size - 1);
    }
  }
  Sequence sequence{.ids = std::move(ids), .blocks = {}, .logprobs = {}, .num_done = 0};
  if (sequence.num_rows() > config.max_positions) {
    return InvalidArgument(sequence.ids.size(), " ids: the model has ", config.max_positions,
                           " positions");
  }
  const int64_t needed = NumBlocks(std::max<int64_t>(sequence.num_rows(), 0));
  if (needed > decoder_.num_blocks()) {
    return InvalidArgument(sequence.ids.size(), " ids: the KV cache holds ",
                           decoder_.num_blocks() * kBlockTokens, " tokens (give more --kv-memory)");
  }
  num_waiting_ += std::max<int64_t>(sequence.num_rows(), 0);
  sequences_.push_back(std::move(sequence));
  return Status::Ok();
}

// Whether the sequence has its blocks.
bool SequenceScorer::Begin(Sequence& sequence) {
  if (!sequence.blocks.empty() || sequence.done()) return true;
  const auto needed = static_cast<size_t>(NumBlocks(sequence.num_rows()));
  if (needed > free_blocks_.size()) return false;
  sequence.blocks.assign(free_blocks_.end() - static_cast<std::ptrdiff_t>(needed),
                         free_blocks_.end());
  free_blocks_.resize(free_blocks_.size() - needed);
  return true;
}

Pass SequenceScorer::NextPass() {
  Pass pass;
  planned_.clear();
  for (Sequence& sequence : sequences_) {
    const int64_t room = max_pass_tokens_ - static_cast<int64_t>(pass.tokens.size());
    if (room == 0 || !Begin(sequence)) break;
    const int64_t left = std::max<int64_t>(sequence.num_rows() - sequence.num_done, 0);
    const int64_t count = std::min(room, left);
    planned_.push_back(count);
    if (count == 0) continue;
    const int64_t end = sequence.num_done + count;
    pass.chunks.push_back(
        {.start = sequence.num_done,
         .num_tokens = count,
         .blocks =
             std::span<const BlockId>(sequence.blocks).first(static_cast<size_t>(NumBlocks(end)))});
    for (int64_t i = sequence.num_done; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      pass.scores.push_back({.row = static_cast<int64_t>(pass.tokens.size()),
                             .target = sequence.ids[at + 1],
                             .scale = 1.0});
      pass.tokens.push_back(sequence.ids[at]);
    }
  }
  return pass;
}

void SequenceScorer::Take(const std::vector<float>& logprobs) {
  auto from = logprobs.begin();
  for (size_t i = 0; i < planned_.size(); ++i) {
    Sequence& sequence = sequences_[i];
    sequence.logprobs.insert(sequence.logprobs.end(), from, from + planned_[i]);
    sequence.num_done += planned_[i];
    from += planned_[i];
    num_waiting_ -= planned_[i];
  }
}

Result<std::vector<std::vector<float>>> SequenceScorer::Step() {
  const Pass pass = NextPass();
  if (!pass.tokens.empty()) {
    PACE_ASSIGN_OR_RETURN(const PassResult result, decoder_.Run(pass));
    Take(result.logprobs);
  }
  std::vector<std::vector<float>> completed;
  while (!sequences_.empty() && sequences_.front().done()) {
    Sequence& front = sequences_.front();
    free_blocks_.insert(free_blocks_.end(), front.blocks.begin(), front.blocks.end());
    completed.push_back(std::move(front.logprobs));
    sequences_.pop_front();
  }
  return completed;
}

}  // namespace pace
