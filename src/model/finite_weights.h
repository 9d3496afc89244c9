// CheckFinite: refuses weights that hold NaN or infinity.
// Thread-safety: a function of its argument.
#ifndef PACE_MODEL_FINITE_WEIGHTS_H_
#define PACE_MODEL_FINITE_WEIGHTS_H_

#include "core/status.h"
#include "model/weight_set.h"

namespace pace {

// An error names the first tensor with such an element and how many it has. Reads
// every byte once. REQUIRES: on the host
Status CheckFinite(const WeightSet& weights);

}  // namespace pace

#endif  // PACE_MODEL_FINITE_WEIGHTS_H_
