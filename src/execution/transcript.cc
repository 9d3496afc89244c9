#include "execution/transcript.h"

#include <utility>

#include "execution/prompt_source.h"

namespace pace {

std::vector<ResponseTurn> TurnsOf(const PartialResponse& response, const Tokenizer& tokenizer) {
  std::vector<ResponseTurn> turns;
  std::vector<TokenId> ids;
  for (size_t i = 0; i < response.tokens.size(); ++i) {
    ids.push_back(response.tokens[i].id);
    const bool last = i + 1 == response.tokens.size();
    if (!last && response.tokens[i + 1].is_tool == response.tokens[i].is_tool) continue;
    turns.push_back({.is_tool = response.tokens[i].is_tool,
                     .text = tokenizer.Decode(ids, /*skip_special=*/false)});
    ids.clear();
  }
  return turns;
}

ResponseRecord TranscriptOf(const Problem& problem, std::span<const TokenId> prompt,
                            const PartialResponse& response, const Tokenizer& tokenizer) {
  ResponseRecord record;
  const Verification seen = VerifyResponse(problem, response, tokenizer);
  record.correct = seen.correct;
  record.head.reward = seen.score;
  record.extracted = seen.extracted;
  record.answer = problem.answer;
  record.length = response.num_policy_tokens();
  record.prompt =
      tokenizer.Decode(std::vector<TokenId>(prompt.begin(), prompt.end()), /*skip_special=*/false);
  record.turns = TurnsOf(response, tokenizer);
  return record;
}

}  // namespace pace
