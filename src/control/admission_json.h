// How the state of an admission policy is written as JSON, in snapshots of a coordinator and of an
// AdmissionSession. core/json_record.h walks these lists in both directions.
#ifndef PACE_CONTROL_ADMISSION_JSON_H_
#define PACE_CONTROL_ADMISSION_JSON_H_

#include "control/admission_policy.h"
#include "core/decision.h"
#include "core/json_record.h"

namespace pace {

template <typename V>
void JsonKeys(V& v, StepPlan& plan) {
  v("step", plan.step);
  v("occupancy", plan.occupancy);
  v("target_rate", plan.target_rate);
  v("smoothed_rate", plan.smoothed_rate);
  v("budget", plan.budget);
  v("cutoff", plan.cutoff);
  v("tie_probability", plan.tie_probability);
}
template <typename V>
void JsonKeys(V& v, AdmissionState& state) {
  v("step", state.step);
  v("smoothed_rate", state.smoothed_rate);
  v("scores", state.scores);
  v("prefix_scores", state.prefix_scores);
  v("pending_scores", state.pending_scores);
  v("pending_prefix_scores", state.pending_prefix_scores);
  v("lengths", state.lengths);
  v("pending_lengths", state.pending_lengths);
  v("strata", state.strata);
  v("plan", state.plan);
  v.Optional("python", state.python, !state.python.empty());
}

}  // namespace pace

#endif  // PACE_CONTROL_ADMISSION_JSON_H_
