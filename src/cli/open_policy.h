// OpenPolicy: LoadPolicy (execution/policy.h) for the command line, which knows how to
// get what is missing.
//
// Thread-safety: a function of its argument and the files.
#ifndef PACE_CLI_OPEN_POLICY_H_
#define PACE_CLI_OPEN_POLICY_H_

#include "config/learning_options.h"
#include "core/status.h"
#include "execution/policy.h"

namespace pace {

Result<Policy> OpenPolicy(const PolicyOptions& options);

}  // namespace pace

#endif  // PACE_CLI_OPEN_POLICY_H_
