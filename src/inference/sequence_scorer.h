// SequenceScorer: log-probabilities of given sequences, many to a pass.
//
// Sequences are taken in order. Each holds the blocks of all its tokens while it
// is scored; a pass is filled with tokens of as many as fit, so that short
// sequences share one pass and a long one takes several. Results come in order.
//
//   PACE_RETURN_IF_ERROR(scorer.Submit(ids));
//   while (scorer.busy()) for (auto& logprobs : *scorer.Step()) ...
//
// Thread-safety: none.
#ifndef PACE_INFERENCE_SEQUENCE_SCORER_H_
#define PACE_INFERENCE_SEQUENCE_SCORER_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "model/decoder.h"

namespace pace {

class SequenceScorer {
 public:
  // Borrows the decoder, whose weights are installed and whose cache is free.
  SequenceScorer(Decoder& decoder, int64_t max_pass_tokens);

  // Errors: an id outside the vocabulary, or a sequence that does not fit.
  Status Submit(std::vector<TokenId> ids);
  // One pass. What it completed, in the order of submission: for each sequence
  // the log-probability of every token but the first, given those before it.
  Result<std::vector<std::vector<float>>> Step();
  bool busy() const { return !sequences_.empty(); }
  // Tokens that passes still have to run.
  int64_t num_waiting_tokens() const { return num_waiting_; }

 private:
  struct Sequence {
    std::vector<TokenId> ids;
    std::vector<BlockId> blocks;  // empty until it is begun
    std::vector<float> logprobs;
    int64_t num_done = 0;

    // The last token is only a target.
    int64_t num_rows() const { return static_cast<int64_t>(ids.size()) - 1; }
    bool done() const { return num_done >= num_rows(); }
  };

  static int64_t NumBlocks(int64_t num_tokens);
  bool Begin(Sequence& sequence);
  Pass NextPass();
  void Take(const std::vector<float>& logprobs);

  Decoder& decoder_;
  const int64_t max_pass_tokens_;
  std::vector<BlockId> free_blocks_;
  std::deque<Sequence> sequences_;
  int64_t num_waiting_ = 0;
  // The present pass: how many tokens of each sequence, from the first on.
  std::vector<int64_t> planned_;
};

}  // namespace pace

#endif  // PACE_INFERENCE_SEQUENCE_SCORER_H_
