// AdmissionSession, with its record.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <utility>
#include <variant>

#include "bind/convert.h"
#include "bind/group.h"
#include "bind/policies.h"
#include "config/settings.h"
#include "control/admission_session.h"
#include "record/session_record.h"

namespace pace::python {
namespace {

using namespace nb::literals;

// The batch and seed are those of the settings.
AdmissionSession MakeSession(const Settings& settings, const nb::object& policy, bool guards) {
  const int64_t batch = settings.batch.num_groups;
  const auto seed = static_cast<uint64_t>(settings.run.seed);
  Check(settings.Validate());
  if (!policy.is_none()) return {AdmissionFromPython(policy), batch, guards};
  AdmissionSession session = Take(AdmissionSession::Create(settings.admission, batch, seed));
  if (guards) return session;
  return {MakeAdmissionPolicy(settings.admission, batch, seed), batch, guards};
}

nb::dict DictOf(const SessionRecord::State& state) {
  nb::dict out;
  out["sizes"] = state.sizes;
  out["time"] = state.time.count();
  out["num_admitted"] = state.num_admitted;
  out["num_tokens"] = state.num_tokens;
  out["num_tokens_rejected"] = state.num_tokens_rejected;
  return out;
}

template <typename T>
T ValueOf(const nb::dict& dict, const char* key) {
  T value{};
  if (!dict.contains(key) || !nb::try_cast<T>(dict[key], value)) {
    Refuse("resume: ", key, " is missing or has another type (give what flush returned)");
  }
  return value;
}

SessionRecord::State StateOf(const nb::dict& dict) {
  return {.sizes = ValueOf<std::map<std::string, int64_t>>(dict, "sizes"),
          .time = Seconds(ValueOf<double>(dict, "time")),
          .num_admitted = ValueOf<int64_t>(dict, "num_admitted"),
          .num_tokens = ValueOf<int64_t>(dict, "num_tokens"),
          .num_tokens_rejected = ValueOf<int64_t>(dict, "num_tokens_rejected")};
}

class Session {
 public:
  Session(const Settings& settings, const nb::object& policy,
          const std::optional<std::string>& record, bool guards,
          const std::optional<nb::dict>& resume)
      : session_(MakeSession(settings, policy, guards)) {
    if (!record.has_value()) return;
    if (!resume.has_value()) {
      record_ = Take(SessionRecord::Create(*record, settings, std::time(nullptr)));
      return;
    }
    const SessionRecord::State state = StateOf(*resume);
    record_ = Take(SessionRecord::Resume(*record, settings, state));
    before_ = state.time;
  }

  StepPlan BeginStep(int64_t step, const std::variant<int64_t, std::vector<const Group*>>& pool,
                     std::optional<int64_t> served) {
    std::optional<StepPlan> plan;
    if (const auto* occupancy = std::get_if<int64_t>(&pool)) {
      plan = Take(session_.BeginStep(PolicyVersion(step), *occupancy, VersionOf(served)));
    } else {
      std::vector<GroupSummary> groups;
      for (const Group* group : std::get<1>(pool)) groups.push_back(group->summary());
      plan = Take(session_.BeginStep(PolicyVersion(step), groups, VersionOf(served)));
    }
    if (record_.has_value()) Check(record_->BeginStep(*plan, session_.served(), Now()));
    return *plan;
  }

  Decision Draw(const Group& group) {
    const Decision decision = Take(session_.Draw(group.summary()));
    if (record_.has_value()) {
      Check(record_->Draw(group.summary(), group.trace(), decision, group.payload(),
                          session_.served()));
    }
    return decision;
  }

  nb::object Flush() {
    if (!record_.has_value()) return nb::none();
    return DictOf(Take(record_->Flush(Now())));
  }

  void Close() {
    if (!record_.has_value()) return;
    const Status status = record_->Finish(Now());
    record_.reset();
    Check(status);
  }

  AdmissionSession& session() { return session_; }

 private:
  Seconds Now() const { return before_ + (std::chrono::steady_clock::now() - start_); }

  AdmissionSession session_;
  std::optional<SessionRecord> record_;
  Seconds before_{0};  // of the session that this one continues
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

nb::dict CountsOf(const AdmissionCounts& counts) {
  nb::dict out;
  out["offered"] = counts.num_offered;
  out["admitted"] = counts.num_admitted;
  out["rejected"] = counts.num_rejected;
  out["guarded"] = counts.num_guarded;
  return out;
}

}  // namespace

void BindSession(nb::module_& module) {
  nb::class_<Session>(module, "AdmissionSession",
                      R"(Admission for a trainer that keeps its own supply, queue and workers.

AdmissionSession(settings, policy=None, record=None, guards=True, resume=None): the settings give
the policy, batch.num_groups and run.seed; `policy` is one of your own; `record` names a new run
directory, which `pace report` and `pace replay` read. With `resume`, what `flush` returned, the
directory is that of an earlier session, and what it recorded after `flush` is removed.

A step draws until batch groups are admitted; rejected groups are dropped. `served` is the oldest
version that a group started now could sample from. The progress guard needs it to know which
group is as fresh as any that could still arrive.

>>> import pace
>>> session = pace.AdmissionSession(pace.Settings("math-4b", method="stale-2"))
>>> session.begin_step(6, occupancy=30, served=5)
StepPlan(step=6, occupancy=30)
>>> session.draw(pace.Group(1, [(5, [(5, 100)], None)]))
Decision(admit, within_bound, score=1)
>>> session.draw(pace.Group(2, [(2, [(2, 100)], None)]))
Decision(reject, over_bound, score=4)
>>> session.counts
{'offered': 2, 'admitted': 1, 'rejected': 1, 'guarded': 0}
)")
      .def(nb::init<const Settings&, const nb::object&, const std::optional<std::string>&, bool,
                    const std::optional<nb::dict>&>(),
           "settings"_a, nb::kw_only(), "policy"_a = nb::none(), "record"_a = nb::none(),
           "guards"_a = true, "resume"_a = nb::none())
      .def(
          "begin_step",
          [](Session& self, int64_t step, std::optional<int64_t> occupancy,
             const std::optional<std::vector<const Group*>>& pool, std::optional<int64_t> served) {
            if (occupancy.has_value() == pool.has_value()) {
              Refuse("begin_step: give either occupancy or pool");
            }
            if (pool.has_value()) return self.BeginStep(step, *pool, served);
            return self.BeginStep(step, *occupancy, served);
          },
          "step"_a, "occupancy"_a = nb::none(), nb::kw_only(), "pool"_a = nb::none(),
          "served"_a = nb::none(),
          "Begins a training step with `occupancy` groups waiting, or with the list of them.")
      .def("draw", &Session::Draw, "group"_a,
           "The verdict on one group, once for each group and step.")
      .def(
          "score",
          [](Session& self, const Group& group) {
            return Take(self.session().Score(group.summary()));
          },
          "group"_a, "The admission score in this step; higher is worse. Draws nothing.")
      .def_prop_ro(
          "chosen",
          [](Session& self) {
            std::vector<int64_t> ids;
            for (const GroupId id : self.session().Chosen()) ids.push_back(id.value());
            return ids;
          },
          "Ids of the groups that this step must draw first.")
      .def_prop_rw(
          "served", [](Session& self) { return StepOf(self.session().served()); },
          [](Session& self, std::optional<int64_t> served) {
            Check(self.session().SetServed(VersionOf(served)));
          },
          nb::for_setter(nb::arg("served").none()))
      .def_prop_ro(
          "counts", [](Session& self) { return CountsOf(self.session().in_step()); },
          "Verdicts of the step begun last.")
      .def_prop_ro(
          "total", [](Session& self) { return CountsOf(self.session().total()); },
          "Verdicts since the session began.")
      .def(
          "save", [](Session& self) { return self.session().Save(); },
          "The whole state as JSON. State of a policy in Python is not part of it.")
      .def(
          "restore",
          [](Session& self, const std::string& text, const std::string& name) {
            Check(self.session().Restore(text, name));
          },
          "text"_a, "name"_a = "session")
      .def(
          "flush", &Session::Flush,
          "Ends the step in the record and writes it out. Returns what `resume` takes, in types of "
          "JSON; None without a record.")
      .def("close", &Session::Close, "Completes the record.")
      .def(
          "__enter__", [](Session& self) -> Session& { return self; }, nb::rv_policy::reference)
      .def(
          "__exit__",
          [](Session& self, const nb::object&, const nb::object&, const nb::object&) {
            self.Close();
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
}

}  // namespace pace::python
