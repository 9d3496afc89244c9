// RunLab: a whole run under virtual time, with real learning.
//
// The real coordinator, engines and trainer; the clock is the cluster model's.
// The same settings give the same weights and the same records to the bit, also
// across numbers of threads and across a kill and a resume.
//
//   PACE_ASSIGN_OR_RETURN(const Settings settings, LoadSettings("tiny", {"run.num_steps=20"}));
//   PACE_ASSIGN_OR_RETURN(const Policy policy, LoadPolicy(settings.policy));
//   PACE_ASSIGN_OR_RETURN(const RunResult result, RunLab(settings, policy, {}));
//   const MetricsRow& last = result.rows.back();
//
// Thread-safety: a function of its arguments; calls may run side by side.
#ifndef PACE_LAB_LAB_H_
#define PACE_LAB_LAB_H_

#include "config/settings.h"
#include "core/status.h"
#include "execution/policy.h"
#include "execution/run.h"

namespace pace {

// What the lab cannot do is an error that names the setting. RunLab asks it.
Status CheckLabSettings(const Settings& settings);

Result<RunResult> RunLab(const Settings& settings, const Policy& policy, const RunSetup& setup);

}  // namespace pace

#endif  // PACE_LAB_LAB_H_
