// PolicyVersion, and Lag: the difference of two. Stable: docs/library.md.
#ifndef PACE_CORE_VERSION_H_
#define PACE_CORE_VERSION_H_

#include <compare>
#include <cstdint>
#include <string>
#include <type_traits>

#include "core/concat.h"

namespace pace {

// Counts training steps: version j is the policy that step j starts from.
class PolicyVersion {
 public:
  constexpr PolicyVersion() = default;
  constexpr explicit PolicyVersion(int64_t step) : step_(step) {}
  constexpr int64_t step() const { return step_; }
  // The policy that the step starting from this one yields.
  constexpr PolicyVersion Next() const { return PolicyVersion(step_ + 1); }
  friend constexpr auto operator<=>(PolicyVersion, PolicyVersion) = default;

 private:
  int64_t step_ = 0;
};

// Steps between the policy that sampled a token and the one that trains on it.
constexpr int64_t Lag(PolicyVersion sampled, PolicyVersion trained) {
  return trained.step() - sampled.step();
}

inline void AppendTo(std::string& out, PolicyVersion version) {
  AppendTo(out, version.step());
}

static_assert(!std::is_convertible_v<int64_t, PolicyVersion>);

}  // namespace pace

#endif  // PACE_CORE_VERSION_H_
