// A rollout engine as the settings describe it, without weights.
// Thread-safety: pure function.
#ifndef PACE_EXECUTION_ENGINE_MAKER_H_
#define PACE_EXECUTION_ENGINE_MAKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "config/settings.h"
#include "core/status.h"
#include "execution/policy.h"
#include "rollout/engine_core.h"

namespace pace {

struct EngineUse {
  // The lab: the most tokens that the modelled cache holds.
  std::optional<int64_t> max_context = std::nullopt;
  // The runtime scores when a response ends. The lab charges for scores as the published
  // system does, at every sync.
  ScoreMoment score_moment = ScoreMoment::kReprefill;
  // Wraps the decoder, in tests.
  std::function<std::unique_ptr<Decoder>(std::unique_ptr<Decoder>)> wrap = {};
};

// Its cache holds engine.kv_mib. Too little for one prompt with its response is an error.
Result<std::unique_ptr<EngineCore>> MakeEngine(const Settings& settings, const Policy& policy,
                                               const EngineUse& use = {});

// Whether the model's positions and engine.kv_mib have room for a prompt with its response;
// MakeEngine asks it.
Status CheckContext(const Settings& settings, const Policy& policy);

// Whether such an engine caches hidden states, to score prefixes when responses end.
bool KeepsStates(const Settings& settings);

}  // namespace pace

#endif  // PACE_EXECUTION_ENGINE_MAKER_H_
