// Candidates: the controllers that `pace advise` compares.
//
//   for (const Candidate& candidate : Candidates()) {
//     Result<Settings> settings = ApplyCandidate(given, candidate);
//   }
//
// Thread-safety: pure functions.
#ifndef PACE_ADVISE_CANDIDATES_H_
#define PACE_ADVISE_CANDIDATES_H_

#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "core/status.h"

namespace pace {

struct Candidate {
  std::string_view title;                // "Async 4"
  std::string_view method;               // a name of config/methods.h
  std::vector<std::string> assignments;  // key=value, applied after the method
};

// One line each, the simplest first: among equally good ones, the first is recommended.
const std::vector<Candidate>& Candidates();

// What gains and costs are measured against.
inline constexpr std::string_view kOnPolicyCandidate = "Sync";
inline constexpr std::string_view kUnfilteredCandidate = "Async 8";

// The given settings under the candidate's controller. Layout, batch, workload and pool stay as
// they are: entries of compare.overrides, which may give a method other machines, are dropped.
Result<Settings> ApplyCandidate(const Settings& settings, const Candidate& candidate);

// The key=value overrides that turn `from` into `to`; those of compare are left out.
std::vector<std::string> OverridesBetween(const Settings& from, const Settings& to);

}  // namespace pace

#endif  // PACE_ADVISE_CANDIDATES_H_
