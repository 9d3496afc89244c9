// ResponseRecorder chooses the responses that are recorded as text (record.responses) and
// writes them.
//
// The sample of a step is chosen while its groups are drawn, because rejected groups are
// dropped at once, and written when the step ends.
//
// TextOf and TranscriptOf turn a response into the text that people read.
//
// Thread-safety: none; the functions are pure.
#ifndef PACE_EXECUTION_RESPONSE_RECORDER_H_
#define PACE_EXECUTION_RESPONSE_RECORDER_H_

#include <span>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/decision.h"
#include "core/staleness.h"
#include "core/status.h"
#include "execution/trajectory.h"
#include "record/response_record.h"
#include "record/run_writer.h"
#include "reward/verification.h"
#include "rollout/request.h"
#include "task/problem.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

class PromptSource;
struct BenchmarkScore;

// The turns of a response, special tokens written out.
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

class ResponseRecorder {
 public:
  // All references outlive the recorder; `writer` may be null: nothing is recorded.
  ResponseRecorder(const Settings& settings, const PromptSource& prompt_source, RunWriter* writer)
      : settings_(settings), prompt_source_(prompt_source), writer_(writer) {}

  Status OnGroupDrawn(PolicyVersion step, const GroupSummary& group, const Decision& decision,
                      const GroupTrajectories& payload);
  Status EndStep();
  Status OnEvaluation(PolicyVersion version, const std::vector<BenchmarkScore>& scores);

 private:
  ResponseRecord Describe(const ResponseHead& head, const GroupSummary& group,
                          const Decision& decision, const GroupTrajectories& payload) const;

  const Settings& settings_;
  const PromptSource& prompt_source_;
  RunWriter* const writer_;
  ResponsePicker picker_;
};

// The text of the policy's last turn, or its end where it is long.
std::string EndOf(const Trajectory& trajectory, const Tokenizer& tokenizer);

}  // namespace pace

#endif  // PACE_EXECUTION_RESPONSE_RECORDER_H_
