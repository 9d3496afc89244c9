#include "bind/policies.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bind/convert.h"
#include "bind/group.h"
#include "config/settings.h"

namespace pace::python {
namespace {

using namespace nb::literals;

nb::object MethodOf(const nb::object& object, const char* name) {
  return nb::getattr(object, name, nb::none());
}

// Releases Python objects with the GIL held, whichever thread destroys the policy.
class PythonObject {
 public:
  explicit PythonObject(nb::object object) : object_(std::move(object)) {}
  ~PythonObject() {
    const nb::gil_scoped_acquire gil;
    object_.reset();
  }
  PythonObject(const PythonObject&) = delete;
  PythonObject& operator=(const PythonObject&) = delete;

  bool is_none() const { return object_.is_none(); }
  template <typename... Args>
  nb::object operator()(Args&&... args) const {
    return object_(std::forward<Args>(args)...);
  }

 private:
  nb::object object_;
};

class PythonAdmission final : public AdmissionPolicy {
 public:
  explicit PythonAdmission(const nb::object& policy)
      : begin_step_(MethodOf(policy, "begin_step")),
        judge_(MethodOf(policy, "judge")),
        observe_(MethodOf(policy, "observe")),
        score_(MethodOf(policy, "score")),
        needs_members_(nb::cast<bool>(nb::getattr(policy, "needs_members", nb::bool_(false)))) {
    if (judge_.is_none()) Refuse("admission: the policy has no method judge(group)");
  }

  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) override {
    plan_ = {.step = step, .occupancy = pool.occupancy};
    if (!begin_step_.is_none()) {
      const nb::gil_scoped_acquire gil;
      begin_step_(step.step(), pool.occupancy, pool.batch, StepOf(pool.served));
    }
    return plan_;
  }

  Decision Judge(const GroupSummary& summary) const override {
    const nb::gil_scoped_acquire gil;
    const nb::object group = nb::cast(Group(summary));
    const nb::object verdict = judge_(group);
    Decision decision = Measure(summary, plan_.step);
    if (nb::isinstance<Decision>(verdict)) {
      const auto& given = nb::cast<const Decision&>(verdict);
      decision.verdict = given.verdict;
      decision.reason = given.reason;
      decision.score = given.score;
      decision.weight = given.weight;
      decision.percentile = given.percentile;
      return decision;
    }
    const bool admit = nb::cast<bool>(nb::bool_(verdict));
    decision.verdict = admit ? Verdict::kAdmit : Verdict::kReject;
    decision.reason = admit ? Reason::kWithinBound : Reason::kOverBound;
    decision.score = ScoreOf(group, summary);
    return decision;
  }

  void Observe(const GroupSummary& summary, const Decision& decision) override {
    if (observe_.is_none()) return;
    const nb::gil_scoped_acquire gil;
    observe_(Group(summary), decision);
  }

  double Score(const GroupSummary& summary) const override {
    if (score_.is_none()) return summary.LagAt(plan_.step);
    const nb::gil_scoped_acquire gil;
    return ScoreOf(nb::cast(Group(summary)), summary);
  }

  bool NeedsMembers() const override { return needs_members_; }
  // The state of the Python object is its owner's to save.
  AdmissionState Save() const override { return {.step = plan_.step, .plan = plan_}; }
  Status Restore(const AdmissionState& state) override {
    plan_ = state.plan;
    return Status::Ok();
  }

 private:
  double ScoreOf(const nb::object& group, const GroupSummary& summary) const {
    if (score_.is_none()) return summary.LagAt(plan_.step);
    return nb::cast<double>(score_(group));
  }

  const PythonObject begin_step_, judge_, observe_, score_;
  const bool needs_members_;
  StepPlan plan_;
};

class PythonSupply final : public SupplyPolicy {
 public:
  explicit PythonSupply(const nb::object& policy)
      : num_to_start_(MethodOf(policy, "num_to_start")),
        finished_(MethodOf(policy, "on_group_finished")),
        ready_(MethodOf(policy, "on_trainer_ready")) {
    if (num_to_start_.is_none()) Refuse("supply: the policy has no method num_to_start(view)");
    const nb::object most = MethodOf(policy, "max_outstanding");
    if (!most.is_none()) max_outstanding_ = nb::cast<std::optional<int64_t>>(most());
  }

  int64_t NumToStart(const SupplyView& view) const override {
    const nb::gil_scoped_acquire gil;
    return nb::cast<int64_t>(num_to_start_(view));
  }
  void OnGroupFinished(const SupplyView& view) override {
    if (finished_.is_none()) return;
    const nb::gil_scoped_acquire gil;
    finished_(view);
  }
  void OnTrainerReady(const SupplyView& view, const SupplyReport& report) override {
    if (ready_.is_none()) return;
    const nb::gil_scoped_acquire gil;
    ready_(view, report.seconds, report.waited, report.num_tokens);
  }
  std::optional<int64_t> MaxOutstanding() const override { return max_outstanding_; }

 private:
  const PythonObject num_to_start_, finished_, ready_;
  std::optional<int64_t> max_outstanding_;
};

// A built-in policy, to be called or wrapped by one in Python.
class BuiltInAdmission {
 public:
  BuiltInAdmission(const Settings& settings)
      : batch_(settings.batch.num_groups), policy_(PolicyOf(settings)) {}

  StepPlan BeginStep(int64_t step, int64_t occupancy, std::optional<int64_t> batch,
                     std::optional<int64_t> served) {
    if (policy_->RanksPool()) Refuse("admission.cutoff = pool: this policy works in a session");
    if (began_ && step <= step_) Refuse("step = ", step, ": must be above ", step_);
    if (step < 0 || occupancy < 0) Refuse("step and occupancy must be >= 0");
    began_ = true;
    step_ = step;
    return policy_->BeginStep(
        PolicyVersion(step),
        {.occupancy = occupancy, .batch = batch.value_or(batch_), .served = VersionOf(served)});
  }
  Decision Judge(const Group& group) const { return policy_->Judge(Drawable(group)); }
  void Observe(const Group& group, const Decision& decision) {
    policy_->Observe(Drawable(group), decision);
  }
  double Score(const Group& group) const { return policy_->Score(Drawable(group)); }
  bool needs_members() const { return policy_->NeedsMembers(); }

 private:
  static std::unique_ptr<AdmissionPolicy> PolicyOf(const Settings& settings) {
    Check(CheckBuiltIn(settings.admission));
    return MakeAdmissionPolicy(settings.admission, settings.batch.num_groups,
                               static_cast<uint64_t>(settings.run.seed));
  }
  const GroupSummary& Drawable(const Group& group) const {
    const GroupSummary& summary = group.summary();
    if (!began_) Refuse("group ", summary.id, ": no step has begun");
    if (summary.assembled.step() > step_) {
      Refuse("group ", summary.id, ": completed at version ", summary.assembled,
             ", after the step ", step_);
    }
    if (needs_members() && summary.members.empty()) {
      Refuse("group ", summary.id, ": this policy reads the members (needs_members = True)");
    }
    return summary;
  }

  int64_t batch_;
  std::unique_ptr<AdmissionPolicy> policy_;
  bool began_ = false;
  int64_t step_ = 0;
};

// Every key of a state with its field.
template <typename F>
void VisitState(SupplyState& s, F visit) {
  visit("limit", s.limit);
  visit("owed", s.owed);
  visit("wait", s.wait);
  visit("num_steps", s.num_steps);
  visit("num_blocks", s.num_blocks);
  visit("num_measured", s.num_measured);
  visit("num_samples", s.num_samples);
  visit("sum_running", s.sum_running);
  visit("sum_tokens", s.sum_tokens);
  visit("sum_seconds", s.sum_seconds);
  visit("running", s.running);
  visit("throughput", s.throughput);
  visit("trial_from", s.trial_from);
  visit("trial_running", s.trial_running);
  visit("trial_throughput", s.trial_throughput);
  visit("gain", s.gain);
  visit("gain_middle", s.gain_middle);
  visit("ceiling", s.ceiling);
  visit("ceiling_throughput", s.ceiling_throughput);
}

nb::dict DictOf(SupplyState state) {
  nb::dict out;
  VisitState(state, [&](const char* key, auto& value) { out[key] = value; });
  out["balances"] = std::vector<int64_t>(state.balances.begin(), state.balances.end());
  return out;
}

template <typename T>
void TakeValue(const nb::dict& dict, const char* key, T& value) {
  if (!dict.contains(key) || !nb::try_cast<T>(dict[key], value)) {
    Refuse("restore: ", key, " is missing or has another type (give what save returned)");
  }
}

SupplyState StateOf(const nb::dict& dict) {
  SupplyState state;
  VisitState(state, [&](const char* key, auto& value) { TakeValue(dict, key, value); });
  std::vector<int64_t> balances;
  TakeValue(dict, "balances", balances);
  state.balances.assign(balances.begin(), balances.end());
  return state;
}

}  // namespace

std::unique_ptr<AdmissionPolicy> AdmissionFromPython(nb::object policy) {
  return std::make_unique<PythonAdmission>(policy);
}
std::unique_ptr<SupplyPolicy> SupplyFromPython(nb::object policy) {
  return std::make_unique<PythonSupply>(policy);
}

void BindPolicies(nb::module_& module) {
  nb::class_<BuiltInAdmission>(module, "AdmissionPolicy", R"(A built-in admission policy.

AdmissionPolicy(settings) is the one that the settings name. Its methods are those that a policy
in Python may have, so one can wrap the other. It has no progress guard: AdmissionSession does.

>>> import pace
>>> policy = pace.AdmissionPolicy(pace.Settings("math-4b", method="stale-1"))
>>> policy.begin_step(5, occupancy=20)
StepPlan(step=5, occupancy=20)
>>> policy.judge(pace.Group(1, [(3, [(3, 10)], None)]))
Decision(reject, over_bound, score=2)
)")
      .def(nb::init<const Settings&>(), "settings"_a)
      .def("begin_step", &BuiltInAdmission::BeginStep, "step"_a, "occupancy"_a,
           "batch"_a = nb::none(), "served"_a = nb::none())
      .def("judge", &BuiltInAdmission::Judge, "group"_a)
      .def("observe", &BuiltInAdmission::Observe, "group"_a, "decision"_a)
      .def("score", &BuiltInAdmission::Score, "group"_a)
      .def_prop_ro("needs_members", &BuiltInAdmission::needs_members);

  nb::class_<SupplyView>(module, "SupplyView", "All that a supply policy may know.")
      .def(nb::init<>())
      .def_rw("num_running", &SupplyView::num_running)
      .def_rw("num_pooled", &SupplyView::num_pooled)
      .def_rw("num_selected", &SupplyView::num_selected)
      .def_rw("num_awaiting_sync", &SupplyView::num_awaiting_sync)
      .def_rw("num_started", &SupplyView::num_started)
      .def_rw("num_trained", &SupplyView::num_trained)
      .def_rw("num_rejected", &SupplyView::num_rejected)
      .def_rw("num_lost", &SupplyView::num_lost)
      .def_prop_rw(
          "trainer", [](const SupplyView& v) { return v.trainer.step(); },
          [](SupplyView& v, int64_t step) { v.trainer = PolicyVersion(step); })
      .def_prop_rw(
          "published", [](const SupplyView& v) { return v.published.step(); },
          [](SupplyView& v, int64_t step) { v.published = PolicyVersion(step); })
      .def_prop_ro("oldest_promised", [](const SupplyView& v) { return StepOf(v.oldest_promised); })
      .def_prop_ro("oldest_dispatch", [](const SupplyView& v) { return StepOf(v.oldest_dispatch); })
      .def_rw("gathering", &SupplyView::gathering)
      .def_rw("training", &SupplyView::training)
      .def_rw("supply_limited", &SupplyView::supply_limited)
      .def_prop_ro("num_outstanding", &SupplyView::num_outstanding);

  nb::class_<SupplyPolicy>(module, "SupplyPolicy", R"(A built-in supply policy.

>>> import pace
>>> policy = pace.SupplyPolicy(pace.Settings("math-4b", "supply.threshold=1"))
>>> view = pace.SupplyView()
>>> view.num_running = 20
>>> policy.num_to_start(view), policy.max_outstanding()
(4, 24)
)")
      .def(nb::new_([](const Settings& settings) {
             return MakeSupplyPolicy(settings.supply, settings.batch.num_groups);
           }),
           "settings"_a)
      .def("num_to_start", &SupplyPolicy::NumToStart, "view"_a)
      .def("on_group_finished", &SupplyPolicy::OnGroupFinished, "view"_a)
      .def(
          "on_trainer_ready",
          [](SupplyPolicy& self, const SupplyView& view, double seconds, double waited,
             int64_t num_tokens) { self.OnTrainerReady(view, {seconds, waited, num_tokens}); },
          "view"_a, "seconds"_a = 0.0, "waited"_a = 0.0, "num_tokens"_a = 0)
      .def("max_outstanding", &SupplyPolicy::MaxOutstanding)
      .def(
          "save", [](const SupplyPolicy& self) { return DictOf(self.Save()); },
          "The whole state as a dictionary in types of JSON.")
      .def(
          "restore",
          [](SupplyPolicy& self, const nb::dict& state) { Check(self.Restore(StateOf(state))); },
          "state"_a, "Continues from what `save` returned.");
}

}  // namespace pace::python
