// ScoreBatch: what prefix scores ask of a decoder at one time, and whose it is.
//
//   batch.Clear();
//   batch.Ask(slot, live, tokens, [](int64_t t) { return row of token t; });
//   batch.Answer(table, decoder's log-probabilities of batch.requests());
//
// Thread-safety: none.
#ifndef PACE_ROLLOUT_SCORE_BATCH_H_
#define PACE_ROLLOUT_SCORE_BATCH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "model/decoder.h"
#include "rollout/prefix_scorer.h"
#include "rollout/response_table.h"

namespace pace {

class ScoreBatch {
 public:
  void Clear() {
    parts_.clear();
    requests_.clear();
  }

  // Asks about the sampled ones among these tokens of a response; row_of(t) is the
  // row that token t follows.
  template <typename RowOf>
  void Ask(MemberSlot slot, const LiveResponse& live, PrefixScorer::Range tokens,
           const RowOf& row_of) {
    if (tokens.size() == 0) return;
    parts_.push_back({slot, tokens});
    const double scale = live.group->request.SamplingOf(live.member).scale();
    for (int64_t t = tokens.begin; t < tokens.end; ++t) {
      const TokenRecord& token = live.response.tokens[static_cast<size_t>(t)];
      if (token.given) continue;
      requests_.push_back({.row = row_of(t), .target = token.id, .scale = scale});
    }
  }
  const std::vector<ScoreRequest>& requests() const { return requests_; }

  // In the order of the requests. A response whose score is complete has it now, and
  // awaits none.
  void Answer(ResponseTable& table, std::span<const float> logprobs) const;

 private:
  struct Part {
    MemberSlot slot = 0;
    PrefixScorer::Range tokens;
  };
  std::vector<Part> parts_;
  std::vector<ScoreRequest> requests_;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_SCORE_BATCH_H_
