#include "rollout/score_batch.h"

#include <cmath>
#include <optional>

#include "core/check.h"

namespace pace {

void ScoreBatch::SetScores(ResponseTable& table, std::span<const float> logprobs) const {
  PACE_CHECK(logprobs.size() == requests_.size(), logprobs.size(), " scores");
  size_t next = 0;
  for (const Part& part : parts_) {
    LiveResponse& live = table.At(part.slot);
    for (int64_t t = part.tokens.begin; t < part.tokens.end; ++t) {
      const TokenRecord& token = live.response.tokens[static_cast<size_t>(t)];
      if (token.is_tool) continue;
      const double recorded = token.logprob;
      const double difference = std::abs(static_cast<double>(logprobs[next++]) - recorded);
      const std::optional<double> score = live.scorer.Add(t, difference);
      if (!score) continue;
      live.response.prefix_score = score;
      live.response.awaits_score = false;
    }
  }
}

}  // namespace pace
