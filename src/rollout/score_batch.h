// ScoreBatch: score requests for a decoder, and the responses that they belong to.
//
//   batch.Clear();
//   batch.Add(slot, live, tokens, RowOf);
//   batch.SetScores(table, logprobs);  // of batch.requests(), by the decoder
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

  // Adds requests for the sampled ones among these tokens of a response; row_of(t) is the row
  // that token t follows.
  template <typename RowOf>
  void Add(MemberSlot slot, const LiveResponse& live, PrefixScorer::Range tokens,
           const RowOf& row_of) {
    if (tokens.size() == 0) return;
    parts_.push_back({slot, tokens});
    const double scale = live.group->request.SamplingOf(live.member).scale();
    for (int64_t t = tokens.begin; t < tokens.end; ++t) {
      const TokenRecord& token = live.response.tokens[static_cast<size_t>(t)];
      if (token.is_tool) continue;
      requests_.push_back({.row = row_of(t), .target = token.id, .scale = scale});
    }
  }
  const std::vector<ScoreRequest>& requests() const { return requests_; }

  // Log-probabilities in the order of the requests. Responses whose prefix score is complete
  // get it and no longer await one.
  void SetScores(ResponseTable& table, std::span<const float> logprobs) const;

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
