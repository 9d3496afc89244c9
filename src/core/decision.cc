#include "core/decision.h"

#include <array>

namespace pace {
namespace {

constexpr std::array<std::string_view, kNumReasons> kReasonNames = {
    "warming_up",        "no_budget",      "under_cutoff", "over_cutoff", "tie_admitted",
    "tie_rejected",      "quota_spent",    "within_bound", "over_bound",  "unfiltered",
    "freshest_possible", "progress_guard", "pool_groups",  "pool_bytes",
};

}  // namespace

std::string_view Name(Verdict verdict) {
  return verdict == Verdict::kAdmit ? "admit" : "reject";
}

std::string_view Name(Reason reason) {
  return kReasonNames.at(static_cast<size_t>(reason));
}

std::optional<Reason> ReasonFromName(std::string_view name) {
  for (size_t i = 0; i < kReasonNames.size(); ++i) {
    if (kReasonNames[i] == name) return static_cast<Reason>(i);
  }
  return std::nullopt;
}

}  // namespace pace
