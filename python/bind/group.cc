#include "bind/group.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "bind/convert.h"
#include "record/trace_reader.h"

namespace pace::python {
namespace {

using namespace nb::literals;

std::vector<Segment> SegmentsOf(int64_t group, size_t member,
                                const std::vector<std::pair<int64_t, int64_t>>& runs,
                                int64_t completed) {
  const auto refuse = [&](const auto&... parts) {
    Refuse("group ", group, ", member ", member, ": ", parts...);
  };
  if (completed < 0 || completed > kMaxTraceVersion) {
    refuse("completed = ", completed, ": must be from 0 to ", kMaxTraceVersion);
  }
  if (runs.empty()) refuse("segments = []: must hold at least one (version, num_tokens)");
  std::vector<Segment> segments;
  int64_t last = 0;
  for (const auto& [version, num_tokens] : runs) {
    if (version < last || version > completed) {
      refuse("version = ", version, ": must be from ", last,
             " (versions never decrease) to completed, ", completed);
    }
    if (num_tokens < 1 || num_tokens > kMaxTraceTokens) {
      refuse("num_tokens = ", num_tokens, ": must be from 1 to ", kMaxTraceTokens);
    }
    segments.push_back({PolicyVersion(version), num_tokens});
    last = version;
  }
  return segments;
}

}  // namespace

Group::Group(int64_t id, const std::vector<Response>& members, double reward, int64_t num_bytes)
    : reward_(reward) {
  if (id < 0 || id > kMaxTraceCount) Refuse("group = ", id, ": must be from 0 to 2^53");
  if (members.empty()) Refuse("group ", id, ": members = []: must hold at least one response");
  if (num_bytes < 0) Refuse("group ", id, ": num_bytes = ", num_bytes, ": must be >= 0");
  int64_t assembled = 0;
  for (const auto& [completed, runs, prefix_score] : members) {
    if (prefix_score.has_value() &&
        !(*prefix_score >= 0 && *prefix_score <= kMaxTracePrefixScore)) {
      Refuse("group ", id, ", member ", members_.size(), ": prefix_score = ", *prefix_score,
             ": must be from 0 to ", kMaxTracePrefixScore, " or None");
    }
    segments_.push_back(SegmentsOf(id, members_.size(), runs, completed));
    members_.push_back(MemberSummary::Of(segments_.back(), PolicyVersion(completed), prefix_score));
    assembled = std::max(assembled, completed);
  }
  summary_ = GroupSummary::Of(GroupId(id), PolicyVersion(assembled), members_, num_bytes);
}

Group::Group(const GroupSummary& summary)
    : members_(summary.members.begin(), summary.members.end()), summary_(summary) {
  summary_.members = members_;
}

Group::Group(const Group& other)
    : members_(other.members_),
      segments_(other.segments_),
      summary_(other.summary_),
      reward_(other.reward_) {
  summary_.members = members_;
}

std::vector<TraceMember> Group::trace() const {
  std::vector<TraceMember> out;
  for (size_t i = 0; i < segments_.size(); ++i) {
    out.push_back({members_[i].completed, segments_[i], members_[i].prefix_score});
  }
  return out;
}

PayloadStats Group::payload() const {
  PayloadStats stats;
  stats.length =
      static_cast<double>(summary_.num_tokens) / static_cast<double>(summary_.num_members);
  stats.reward = reward_;
  return stats;
}

void BindGroups(nb::module_& module) {
  nb::class_<Group>(module, "Group", R"(A finished group: the responses to one prompt.

Group(id, members, reward=0.0, num_bytes=0): each member is (completed, segments, prefix_score):
the trainer's version when the response finished, runs of tokens by the version that sampled them,
and the prefix score or None.

>>> import pace
>>> group = pace.Group(7, [(5, [(3, 10), (4, 30)], None), (5, [(5, 20)], 0.02)])
>>> group.num_tokens, group.oldest, group.lag(6)
(60, 3, 1.625)
)")
      .def(nb::init<int64_t, const std::vector<Group::Response>&, double, int64_t>(), "id"_a,
           "members"_a, "reward"_a = 0.0, "num_bytes"_a = 0)
      .def_prop_ro("id", [](const Group& g) { return g.summary().id.value(); })
      .def_prop_ro(
          "assembled", [](const Group& g) { return g.summary().assembled.step(); },
          "The trainer's version when the last member finished.")
      .def_prop_ro(
          "oldest", [](const Group& g) { return g.summary().oldest.step(); },
          "The oldest version that sampled a token.")
      .def_prop_ro("num_members", [](const Group& g) { return g.summary().num_members; })
      .def_prop_ro("num_tokens", [](const Group& g) { return g.summary().num_tokens; })
      .def_prop_ro(
          "generation", [](const Group& g) { return g.summary().generation; },
          "Generation staleness, the mean over members.")
      .def_prop_ro(
          "prefix_score", [](const Group& g) { return g.summary().prefix_score; },
          "The mean over the members that have one, or None.")
      .def(
          "waiting",
          [](const Group& g, int64_t step) { return g.summary().Waiting(PolicyVersion(step)); },
          "step"_a, "Waiting staleness at a step.")
      .def(
          "lag",
          [](const Group& g, int64_t step) { return g.summary().LagAt(PolicyVersion(step)); },
          "step"_a, "Mean lag of the tokens at a step.")
      .def(
          "max_token_lag",
          [](const Group& g, int64_t step) { return g.summary().MaxTokenLag(PolicyVersion(step)); },
          "step"_a);

  nb::class_<Decision>(module, "Decision", R"(The verdict on one drawn group, with its numbers.

Policies in Python may return one from judge: Decision(admit, score=0.0, reason=None).

>>> import pace
>>> pace.Decision(False, score=3.5, reason="over_bound")
Decision(reject, over_bound, score=3.5)
)")
      .def(
          "__init__",
          [](Decision* self, bool admit, double score, const std::optional<std::string>& reason) {
            new (self) Decision();
            self->verdict = admit ? Verdict::kAdmit : Verdict::kReject;
            self->score = score;
            self->reason = admit ? Reason::kWithinBound : Reason::kOverBound;
            if (!reason.has_value()) return;
            const std::optional<Reason> known = ReasonFromName(*reason);
            if (!known.has_value()) Refuse("reason = ", *reason, ": is no reason of pace");
            self->reason = *known;
          },
          "admit"_a, "score"_a = 0.0, "reason"_a = nb::none())
      .def_prop_ro("admitted", [](const Decision& d) { return d.verdict == Verdict::kAdmit; })
      .def_prop_ro("verdict", [](const Decision& d) { return std::string(Name(d.verdict)); })
      .def_prop_ro("reason", [](const Decision& d) { return std::string(Name(d.reason)); })
      .def_ro("waiting", &Decision::waiting)
      .def_ro("generation", &Decision::generation)
      .def_ro("weight", &Decision::weight)
      .def_ro("score", &Decision::score)
      .def_prop_ro("prefix_score", [](const Decision& d) { return d.prefix_score; })
      .def_prop_ro("percentile", [](const Decision& d) { return d.percentile; })
      .def("__bool__", [](const Decision& d) { return d.verdict == Verdict::kAdmit; })
      .def("__repr__", [](const Decision& d) {
        return Concat("Decision(", Name(d.verdict), ", ", Name(d.reason), ", score=", d.score, ")");
      });

  nb::class_<StepPlan>(module, "StepPlan", "What a step fixed before its first draw.")
      .def_prop_ro("step", [](const StepPlan& p) { return p.step.step(); })
      .def_ro("occupancy", &StepPlan::occupancy)
      .def_prop_ro("target_rate", [](const StepPlan& p) { return p.target_rate; })
      .def_prop_ro("smoothed_rate", [](const StepPlan& p) { return p.smoothed_rate; })
      .def_prop_ro("budget", [](const StepPlan& p) { return p.budget; })
      .def_prop_ro("cutoff", [](const StepPlan& p) { return p.cutoff; })
      .def("__repr__", [](const StepPlan& p) {
        std::string out = Concat("StepPlan(step=", p.step.step(), ", occupancy=", p.occupancy);
        if (p.budget.has_value()) out += Concat(", budget=", *p.budget);
        if (p.cutoff.has_value()) out += Concat(", cutoff=", *p.cutoff);
        return out + ")";
      });
}

}  // namespace pace::python
