// A rollout engine as the settings describe it, without weights.
// Thread-safety: pure function.
#ifndef PACE_EXECUTION_ENGINE_MAKER_H_
#define PACE_EXECUTION_ENGINE_MAKER_H_

#include <memory>

#include "config/settings.h"
#include "core/status.h"
#include "execution/policy.h"
#include "rollout/engine_core.h"

namespace pace {

// An error where the cache cannot hold one prompt with its response.
Result<std::unique_ptr<EngineCore>> MakeEngine(const Settings& settings, const Policy& policy);

}  // namespace pace

#endif  // PACE_EXECUTION_ENGINE_MAKER_H_
