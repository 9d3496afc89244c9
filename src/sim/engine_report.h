// What an Engine is told once, and what it says after acting.
#ifndef PACE_SIM_ENGINE_REPORT_H_
#define PACE_SIM_ENGINE_REPORT_H_

#include <cstdint>

#include "config/run_options.h"
#include "sim/response.h"

namespace pace {

struct EngineOptions {
  int64_t slots = 256;
  int64_t kv_capacity = 0;  // context tokens
  bool rebuild_kv = true;   // at a sync
  bool rescore = false;     // whether interrupted prefixes cost rescoring
  PrefixOptions prefix;
};

enum class EngineEvent {
  kNothing,
  kStretchEnded,  // `response` is out: its turn is over
  kSynced,        // the new weights are in
  kRescored,
  kPaused,
};

struct EngineReport {
  EngineEvent event = EngineEvent::kNothing;
  ResponseIndex response = 0;
};

}  // namespace pace

#endif  // PACE_SIM_ENGINE_REPORT_H_
