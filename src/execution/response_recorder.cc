#include "execution/response_recorder.h"

#include <utility>

#include "execution/evaluator.h"
#include "execution/prompt_source.h"
#include "rollout/turn_count.h"

namespace pace {
namespace {

constexpr size_t kMostEndTokens = 256;

}  // namespace

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

std::string TextOf(const PartialResponse& response, const Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  for (const TokenRecord& token : response.tokens) ids.push_back(token.id);
  return tokenizer.Decode(ids, /*skip_special=*/false);
}

ResponseRecord TranscriptOf(const Problem& problem, std::span<const TokenId> prompt,
                            const PartialResponse& response, const Verification& seen,
                            const Tokenizer& tokenizer) {
  ResponseRecord record;
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

std::string EndOf(const Trajectory& trajectory, const Tokenizer& tokenizer) {
  std::vector<TokenId> ids = LastTurn(trajectory.response);
  if (ids.size() > kMostEndTokens) {
    ids.erase(ids.begin(), ids.end() - static_cast<ptrdiff_t>(kMostEndTokens));
  }
  return tokenizer.Decode(ids, /*skip_special=*/true);
}

ResponseRecord ResponseRecorder::Describe(const ResponseHead& head, const GroupSummary& group,
                                          const Decision& decision,
                                          const GroupTrajectories& payload) const {
  const Trajectory& trajectory = *payload.members[static_cast<size_t>(head.member)];
  const Problem problem = prompt_source_.ProblemAt(payload.prompt);
  const Tokenizer& tokenizer = prompt_source_.tokenizer();
  ResponseRecord record =
      TranscriptOf(problem, payload.prompt_tokens, trajectory.response,
                   VerifyResponse(problem, trajectory.response, tokenizer), tokenizer);
  record.head = head;  // with the reward
  record.problem = payload.prompt.value();
  record.admitted = decision.verdict == Verdict::kAdmit;
  record.correct = trajectory.correct;
  record.waiting = group.Waiting(PolicyVersion(head.step));
  record.generation = group.generation;
  record.lag = GenerationStaleness(trajectory.Segments(), trajectory.completed) +
               static_cast<double>(Lag(trajectory.completed, PolicyVersion(head.step)));
  record.finish = FinishReasonName(trajectory.reason);
  return record;
}

Status ResponseRecorder::OnGroupDrawn(PolicyVersion step, const GroupSummary& group,
                                      const Decision& decision, const GroupTrajectories& payload) {
  const RecordResponses wanted = settings_.record.responses;
  const bool all = wanted == RecordResponses::kAll;
  if (writer_ == nullptr || wanted == RecordResponses::kNone) return Status::Ok();
  if (!all && !SamplesStep(step.step())) return Status::Ok();
  for (size_t i = 0; i < payload.members.size(); ++i) {
    const ResponseHead head = {.step = step.step(),
                               .group = group.id.value(),
                               .member = static_cast<int64_t>(i),
                               .reward = payload.members[i]->reward,
                               .reason = decision.reason};
    if (all) {
      PACE_RETURN_IF_ERROR(writer_->WriteResponse(Describe(head, group, decision, payload)));
    } else if (picker_.Wants(head)) {
      ResponseRecord record = Describe(head, group, decision, payload);
      CutTexts(record, kMostSampleBytes);
      picker_.Add(std::move(record));
    }
  }
  return Status::Ok();
}

Status ResponseRecorder::EndStep() {
  for (const ResponseRecord& record : picker_.Take()) {
    PACE_RETURN_IF_ERROR(writer_->WriteResponse(record));
  }
  return Status::Ok();
}

Status ResponseRecorder::OnEvaluation(PolicyVersion version,
                                      const std::vector<BenchmarkScore>& scores) {
  if (writer_ == nullptr) return Status::Ok();
  for (const BenchmarkScore& score : scores) {
    for (ResponseRecord record : score.responses) {
      record.head.step = version.step();
      PACE_RETURN_IF_ERROR(writer_->WriteResponse(record));
    }
  }
  return Status::Ok();
}

}  // namespace pace
