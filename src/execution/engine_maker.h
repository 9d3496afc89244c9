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

// Its cache holds engine.kv_mib, and of a modelled engine no more than
// `max_context` tokens. An error where it cannot hold one prompt with its response.
Result<std::unique_ptr<EngineCore>> MakeEngine(const Settings& settings, const Policy& policy,
                                               std::optional<int64_t> max_context = std::nullopt);

}  // namespace pace

#endif  // PACE_EXECUTION_ENGINE_MAKER_H_
