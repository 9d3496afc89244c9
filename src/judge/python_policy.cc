#include "judge/python_policy.h"

#include <utility>

namespace pace {
namespace {

// Steps in which a policy that will be saved is asked for its state: before it has judged a group,
// and after.
constexpr int64_t kNumChecked = 2;

bool Has(std::string_view methods, std::string_view name) {
  while (!methods.empty()) {
    const size_t space = methods.find(' ');
    if (methods.substr(0, space) == name) return true;
    methods = space == std::string_view::npos ? std::string_view() : methods.substr(space + 1);
  }
  return false;
}

std::string OfGroup(std::string_view call, const GroupSummary& group) {
  return Concat(call, " of group ", group.id.value());
}

}  // namespace

PythonPolicy::PythonPolicy(const PythonName& name, const AdmissionOptions& options, bool saved)
    : name_(Concat(name.file, ":", name.name)), timeout_(options.timeout), saved_(saved) {
  failure_ = Start(name, options).At("admission policy " + name_);
  if (!failure_.ok()) process_.reset();
}

Status PythonPolicy::Start(const PythonName& name, const AdmissionOptions& options) {
  PACE_ASSIGN_OR_RETURN(RewardProcess process,
                        RewardProcess::Start({.python = options.python,
                                              .python_key = "admission.python",
                                              .script = PolicyWorkerSource(),
                                              .file = name.file,
                                              .name = name.name}));
  process_.emplace(std::move(process));
  PACE_ASSIGN_OR_RETURN(const auto message, process_->Await(Seconds(options.start_timeout)));
  if (!message.has_value()) {
    return Unavailable("not loaded within ", options.start_timeout, " s (admission.start_timeout)");
  }
  PACE_ASSIGN_OR_RETURN(const std::string methods, ParseReady(*message));
  begins_ = Has(methods, "begin_step");
  scores_ = Has(methods, "score");
  observes_ = Has(methods, "observe");
  return Status::Ok();
}

void PythonPolicy::Fail(const std::string& what, RewardFault fault, const std::string& why) const {
  failure_ =
      Unavailable("admission policy ", name_, ": ", what, ": ", Name(fault), ": ", OneLine(why));
  process_.reset();
}

std::optional<PolicyAnswer> PythonPolicy::Ask(const std::string& what,
                                              const std::string& message) const {
  if (!failure_.ok()) return std::nullopt;
  Status sent = process_->Send(message);
  const auto heard = sent.ok() ? process_->Await(timeout_) : sent;
  if (!heard.ok()) {
    Fail(what, RewardFault::kCrash, heard.status().message());
    return std::nullopt;
  }
  if (!heard->has_value()) {
    Fail(what, RewardFault::kTimeout,
         Concat("did not return within ", timeout_.count(), " s (admission.timeout)"));
    return std::nullopt;
  }
  Result<PolicyAnswer> answer = ParsePolicyAnswer(**heard);
  if (!answer.ok()) {
    Fail(what, RewardFault::kInvalid, answer.status().message());
    return std::nullopt;
  }
  if (answer->fault != RewardFault::kNone) {
    Fail(what, answer->fault, answer->fault_message);
    return std::nullopt;
  }
  return std::move(answer).value();
}

StepPlan PythonPolicy::BeginStep(PolicyVersion step, const PoolView& pool) {
  plan_ = {.step = step, .occupancy = pool.occupancy};
  if (begins_) Ask(Concat("begin_step(", step.step(), ")"), BeginStepJson(step, pool));
  if (saved_ && num_begun_ < kNumChecked) (void)Save();
  ++num_begun_;
  return plan_;
}

Decision PythonPolicy::Judge(const GroupSummary& group) const {
  Decision decision = Measure(group, plan_.step);
  const std::string what = OfGroup("judge", group);
  const std::optional<PolicyAnswer> answer = Ask(what, JudgeJson(plan_.step, group));
  if (!answer.has_value()) return decision;
  if (!answer->admit.has_value() || !answer->score.has_value()) {
    Fail(what, RewardFault::kInvalid, "gave no verdict");
    return decision;
  }
  decision.verdict = *answer->admit ? Verdict::kAdmit : Verdict::kReject;
  const Reason bound = *answer->admit ? Reason::kWithinBound : Reason::kOverBound;
  decision.reason = answer->reason.value_or(bound);
  decision.score = *answer->score;
  decision.weight = answer->weight.value_or(1);
  decision.percentile = answer->percentile;
  return decision;
}

void PythonPolicy::Observe(const GroupSummary& group, const Decision& decision) {
  if (observes_) Ask(OfGroup("observe", group), ObserveJson(group, decision));
}

double PythonPolicy::Score(const GroupSummary& group) const {
  if (!scores_) return group.LagAt(plan_.step);
  const std::string what = OfGroup("score", group);
  const std::optional<PolicyAnswer> answer = Ask(what, ScoreJson(group));
  if (answer.has_value() && !answer->score.has_value()) {
    Fail(what, RewardFault::kInvalid, "gave no score");
  }
  return answer.has_value() ? answer->score.value_or(0) : 0;
}

AdmissionState PythonPolicy::Save() const {
  AdmissionState state{.step = plan_.step, .plan = plan_};
  if (std::optional<PolicyAnswer> answer = Ask("state", SaveStateJson())) {
    state.python = std::move(answer->state);
  }
  return state;
}

Status PythonPolicy::Restore(const AdmissionState& state) {
  if (state.python.empty()) {
    return InvalidArgument("admission policy ", name_,
                           ": the checkpoint holds no state of a policy in Python (was it made "
                           "with another admission.policy?)");
  }
  Ask("restore", RestoreStateJson(state.python));
  PACE_RETURN_IF_ERROR(failure_);
  plan_ = state.plan;
  return Status::Ok();
}

Result<std::unique_ptr<AdmissionPolicy>> OpenAdmissionPolicy(const AdmissionOptions& options,
                                                             int64_t batch, uint64_t seed,
                                                             bool saved) {
  PACE_ASSIGN_OR_RETURN(const auto name, PythonNameOf("admission.policy", options.python_class));
  if (!name.has_value()) return MakeAdmissionPolicy(options, batch, seed);
  auto policy = std::make_unique<PythonPolicy>(*name, options, saved);
  if (policy->failure() != nullptr) return *policy->failure();
  return std::unique_ptr<AdmissionPolicy>(std::move(policy));
}

}  // namespace pace
