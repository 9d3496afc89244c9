// The random number of a draw, the same on every device.
#ifndef PACE_MODEL_SAMPLE_KEY_H_
#define PACE_MODEL_SAMPLE_KEY_H_

#include "model/sampling.h"

namespace pace {

// Uniform in [0, 1): a function of the key alone.
double UniformOf(const SampleKey& key);

}  // namespace pace

#endif  // PACE_MODEL_SAMPLE_KEY_H_
