// PrefixScorer: accumulates one response's prefix score while its cache is re-prefilled.
//
// The prefix score is the mean |new - recorded log-probability| of the first tokens that the
// policy sampled. Row P - 1 + t of the sequence (P prompt tokens) predicts token t, so the
// re-prefill computes the rows anyway. They arrive in order, over one or more chunks; when the
// re-prefill restarts (a preemption, a newer sync), so does the score.
//
//   scorer.Want(end, num_scored);   // the sampled ones among tokens [0, end)
//   const auto [first, last] = scorer.TokensIn(start, size, num_prompt_tokens);  // of a chunk
//   for (int64_t t = first; t < last; ++t) {  // the sampled ones
//     if (const auto score = scorer.Add(t, Difference(t))) return Status::Ok();
//   }
//
// Thread-safety: none.
#ifndef PACE_ROLLOUT_PREFIX_SCORER_H_
#define PACE_ROLLOUT_PREFIX_SCORER_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/check.h"

namespace pace {

class PrefixScorer {
 public:
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t size() const { return end - begin; }
  };

  // The next re-prefill scores num_scored tokens, all among the first `end`.
  void Want(int64_t end, int64_t num_scored) {
    PACE_CHECK(num_scored > 0 && num_scored <= end, "a prefix of ", num_scored, " in ", end);
    end_ = end;
    num_wanted_ = num_scored;
    num_added_ = 0;
    next_ = 0;
    sum_ = 0;
  }
  bool wanted() const { return num_wanted_ > 0; }

  // Response tokens that rows [start, start + num_rows) of the sequence predict and the score
  // needs; empty if no score is wanted.
  Range TokensIn(int64_t start, int64_t num_rows, int64_t num_prompt_tokens) const {
    const int64_t first_row = num_prompt_tokens - 1;
    const int64_t last = wanted() ? end_ : 0;
    const int64_t begin = std::clamp<int64_t>(start - first_row, 0, last);
    const int64_t end = std::clamp<int64_t>(start + num_rows - first_row, begin, last);
    return {begin, end};
  }

  // Adds |new - recorded| of token t; returns the score with its last token.
  // REQUIRES: wanted; t is after the token before, or 0, which restarts the score.
  std::optional<double> Add(int64_t t, double difference) {
    if (t == 0) {
      num_added_ = 0;
      next_ = 0;
      sum_ = 0;
    }
    PACE_CHECK(t >= next_ && t < end_ && (t == 0) == (num_added_ == 0), "token ", t,
               " scored where ", next_, " was next");
    next_ = t + 1;
    sum_ += difference;
    if (++num_added_ < num_wanted_) return std::nullopt;
    num_wanted_ = 0;
    return sum_ / static_cast<double>(num_added_);
  }

 private:
  int64_t num_wanted_ = 0;  // 0: none
  int64_t end_ = 0;
  int64_t num_added_ = 0;
  int64_t next_ = 0;  // the first token not yet passed
  double sum_ = 0;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_PREFIX_SCORER_H_
