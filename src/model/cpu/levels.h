// The kernels of each level, by name; isa.h chooses among them.
#ifndef PACE_MODEL_CPU_LEVELS_H_
#define PACE_MODEL_CPU_LEVELS_H_

#include "model/cpu/kernels.h"

namespace pace {

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
void GemmAmx(const GemmTask& task);
#endif

}  // namespace pace

#endif  // PACE_MODEL_CPU_LEVELS_H_
