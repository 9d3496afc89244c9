// Transcript: a finished response as the text that people read.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_EXECUTION_TRANSCRIPT_H_
#define PACE_EXECUTION_TRANSCRIPT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/token_id.h"
#include "record/response_record.h"
#include "reward/verification.h"
#include "rollout/request.h"
#include "task/problem.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

// Turns as they were sampled and given, special tokens written out.
std::vector<ResponseTurn> TurnsOf(const PartialResponse& response, const Tokenizer& tokenizer);

// All of a response, a tool's replies included, special tokens written out.
std::string TextOf(const PartialResponse& response, const Tokenizer& tokenizer);

// A record of the texts: prompt, turns, answer and what the verifier extracted.
ResponseRecord TranscriptOf(const Problem& problem, std::span<const TokenId> prompt,
                            const PartialResponse& response, const Verification& seen,
                            const Tokenizer& tokenizer);

// Bytes of prompt and response that a sample keeps; record.responses = all keeps
// every byte.
inline constexpr size_t kMostSampleBytes = 16384;

}  // namespace pace

#endif  // PACE_EXECUTION_TRANSCRIPT_H_
