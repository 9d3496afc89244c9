#include "advise/candidates.h"

#include "config/methods.h"

namespace pace {

const std::vector<Candidate>& Candidates() {
  static const std::vector<Candidate> candidates = {
      {kOnPolicyCandidate, "sync", {}},
      {"Async 1", "async", {"supply.threshold=1"}},
      {"Async 2", "async", {"supply.threshold=2"}},
      {"Async 3", "async", {"supply.threshold=3"}},
      {"Async 4", "async", {"supply.threshold=4"}},
      {"Async 6", "async", {"supply.threshold=6"}},
      {kUnfilteredCandidate, "async", {"supply.threshold=8"}},
      {"PACE", "pace", {}},
      {"Just in time", "jit", {}},
      {"Lean", "lean", {}},
  };
  return candidates;
}

Result<Settings> ApplyCandidate(const Settings& settings, const Candidate& candidate) {
  Settings base = settings;
  base.compare = {};
  // Methods set what they need beside the default policies.
  base.supply.policy = SupplyOptions().policy;
  base.admission.policy = AdmissionOptions().policy;
  base.admission.python_class.clear();
  PACE_ASSIGN_OR_RETURN(Settings out, ApplyMethod(base, std::string(candidate.method)));
  PACE_RETURN_IF_ERROR(ApplyOverrides(out, candidate.assignments));
  PACE_RETURN_IF_ERROR(out.Validate());
  return out;
}

std::vector<std::string> OverridesBetween(const Settings& from, const Settings& to) {
  Settings before = from, after = to;
  const std::vector<Section> old_sections = before.Sections(), sections = after.Sections();
  std::vector<std::string> overrides;
  for (size_t s = 0; s < sections.size(); ++s) {
    if (sections[s].name == "compare") continue;
    for (size_t f = 0; f < sections[s].fields.size(); ++f) {
      const Field& field = sections[s].fields[f];
      const std::string value = field.Get();
      if (value == old_sections[s].fields[f].Get()) continue;
      overrides.push_back(Concat(sections[s].name, ".", field.key(), "=", value));
    }
  }
  return overrides;
}

}  // namespace pace
