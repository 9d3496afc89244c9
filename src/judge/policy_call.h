// One call of an admission policy in Python, its answer, and both as JSON.
//
//   {"call": "judge", "step": 7, "group": {"id": 91, "generation": 0.5, ...}}
//   {"admit": false, "score": 2.5, "reason": "over_bound", "weight": 1}
//
// Thread-safety: values and pure functions.
#ifndef PACE_JUDGE_POLICY_CALL_H_
#define PACE_JUDGE_POLICY_CALL_H_

#include <optional>
#include <string>
#include <string_view>

#include "control/admission_policy.h"
#include "core/decision.h"
#include "core/staleness.h"
#include "core/status.h"
#include "core/version.h"
#include "judge/reward_request.h"

namespace pace {

std::string BeginStepJson(PolicyVersion step, const PoolView& pool);
std::string JudgeJson(PolicyVersion step, const GroupSummary& group);
std::string ScoreJson(const GroupSummary& group);
std::string ObserveJson(const GroupSummary& group, const Decision& decision);
std::string SaveStateJson();
std::string RestoreStateJson(std::string_view state);

// What a policy answered; each call fills in its own fields.
struct PolicyAnswer {
  RewardFault fault = RewardFault::kNone;
  std::string fault_message = {};  // one line, where there is a fault
  std::optional<bool> admit = {};
  std::optional<double> score = {};
  std::optional<Reason> reason = {};
  std::optional<double> weight = {};
  std::optional<double> percentile = {};
  std::string state = {};  // JSON
};

Result<PolicyAnswer> ParsePolicyAnswer(std::string_view json);

}  // namespace pace

#endif  // PACE_JUDGE_POLICY_CALL_H_
