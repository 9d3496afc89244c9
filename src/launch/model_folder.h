// Whether the section `model`, from which costs and memory are computed, is the shape of the model
// that will run.
//
// Thread-safety: a function of its argument and of a file.
#ifndef PACE_LAUNCH_MODEL_FOLDER_H_
#define PACE_LAUNCH_MODEL_FOLDER_H_

#include "config/settings.h"
#include "core/status.h"

namespace pace {

// Compares with the config.json of policy.model. Ok where that is not a folder of this machine: the
// model may be on another one.
Status CheckModelFolder(const Settings& settings);

}  // namespace pace

#endif  // PACE_LAUNCH_MODEL_FOLDER_H_
