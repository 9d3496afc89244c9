// The kernels of each level, by name; isa.h chooses among them.
#ifndef PACE_MODEL_CPU_KERNELS_LEVELS_H_
#define PACE_MODEL_CPU_KERNELS_LEVELS_H_

#include <cstdint>

#include "model/cpu/kernels/kernels.h"

namespace pace {

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
void GemmAmx(const GemmTask& task);
#elif defined(__aarch64__)
extern const Kernels kNeonKernels;
void GemmNeonF32(const GemmTask& task);
void GemmNeonBf16(const GemmTask& task);
void GemmBfmmla(const GemmTask& task);
// What becomes of the sums of some rows of a panel.
void FinishNeonRows(const GemmTask& task, int64_t row, int64_t num_rows, int64_t panel,
                    const float (*sums)[kPanelWidth]);
#endif

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_LEVELS_H_
