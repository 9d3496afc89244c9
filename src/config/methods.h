// Methods: named bundles of settings that a comparison runs side by side.
//
//   sync        strictly on-policy: supply threshold 0, everything admitted
//   async       everything admitted, scores observed
//   m2po        async with M2PO's loss
//   vcpo, dis   async with VCPO's rate and baseline, with SAO's band
//   raw, generation, waiting, effective   policy pace with that variant
//   fair        policy pace_fair
//   stale-K     lag at most K
//   oldest-K    no token older than K
//
// and rules of other systems, docs/policies.md:
//
//   areal-K     a quota on what is begun, decoupled PPO
//   dora-K      at most K versions alive
//   april-F     F batches begun for each, resumed
//   prime-K     no token older than K, running groups cancelled
//   nemo-K      trained on within K versions of the start, oldest start first
//   miles-N     the freshest of at most N in the pool first
//
// Thread-safety: pure functions.
#ifndef PACE_CONFIG_METHODS_H_
#define PACE_CONFIG_METHODS_H_

#include <string>
#include <string_view>

#include "config/settings.h"
#include "core/status.h"

namespace pace {

// The settings of one run of a comparison: the method's bundle, then the
// entries of compare.overrides that name it, then Validate. compare.methods
// and compare.overrides come back empty, so the result runs as it stands.
Result<Settings> ApplyMethod(const Settings& settings, const std::string& method);

// The step time that compare.reference gives for a method, if any.
Result<std::optional<double>> ReferenceSeconds(const CompareOptions& options,
                                               std::string_view method);

}  // namespace pace

#endif  // PACE_CONFIG_METHODS_H_
