// MeasureReprefill: what a weight sync costs responses in progress.
//
// An engine holds unfinished responses of older weights, re-prefills each, samples its next token
// and scores its prefix. Scores come when a response ends, from cached hidden states, as in
// `pace train`; every response ends with the token that follows its re-prefill, so all scores are
// part of the time.
// Thread-safety: none.
#ifndef PACE_BENCH_REPREFILL_H_
#define PACE_BENCH_REPREFILL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/status.h"
#include "model/decoder.h"

namespace pace {

struct ReprefillOptions {
  int64_t num_responses = 1;
  int64_t num_tokens = 0;   // of a response and its prompt; at least kReprefillPrompt + 32
  int64_t pass_tokens = 0;  // rows of a forward pass
  int64_t repetitions = 1;
};

inline constexpr int64_t kReprefillPrompt = 16;

struct ReprefillCost {
  double seconds = 0;          // until every response has its next token and its score
  double scoring_seconds = 0;  // of these, for scores
  int64_t num_rows = 0;        // that were re-prefilled
  int64_t num_scored = 0;      // tokens that a prefix score read
};

// Blocks that the decoder must have. It must cache hidden states.
int64_t ReprefillBlocks(const ReprefillOptions& options);

// One for each repetition, after one that is not counted.
Result<std::vector<ReprefillCost>> MeasureReprefill(std::unique_ptr<Decoder> decoder,
                                                    std::shared_ptr<const DecoderWeights> weights,
                                                    const ReprefillOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_REPREFILL_H_
