// A rollout engine as the settings describe it, without weights.
// Thread-safety: pure function.
#ifndef PACE_EXECUTION_ENGINE_MAKER_H_
#define PACE_EXECUTION_ENGINE_MAKER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "config/settings.h"
#include "core/status.h"
#include "execution/policy.h"
#include "rollout/engine_core.h"

namespace pace {

struct EngineUse {
  // Of a modelled engine: tokens that its cache holds at most.
  std::optional<int64_t> max_context = std::nullopt;
  // Beside a trainer, at the end; a modelled engine pays for scores as the published
  // system does, at every sync.
  ScoreMoment score_moment = ScoreMoment::kReprefill;
};

// Its cache holds engine.kv_mib. An error where that is too little for one prompt with
// its response.
Result<std::unique_ptr<EngineCore>> MakeEngine(const Settings& settings, const Policy& policy,
                                               const EngineUse& use = {});

// Whether the model's positions and engine.kv_mib have room for a prompt with its response;
// MakeEngine asks it.
Status CheckContext(const Settings& settings, const Policy& policy);

// Whether such an engine keeps states for scores at the end.
bool KeepsStates(const Settings& settings);

}  // namespace pace

#endif  // PACE_EXECUTION_ENGINE_MAKER_H_
