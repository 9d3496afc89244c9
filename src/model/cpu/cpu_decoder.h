// A CPU decoder with kernels of the caller's choice; CreateCpuDecoder takes the
// best that the machine has. For tests and measurements.
#ifndef PACE_MODEL_CPU_CPU_DECODER_H_
#define PACE_MODEL_CPU_CPU_DECODER_H_

#include <memory>

#include "core/status.h"
#include "model/cpu/kernels/isa.h"
#include "model/decoder.h"

namespace pace {

// REQUIRES: `isa` is one of IsaLevels()
Result<std::unique_ptr<Decoder>> CreateCpuDecoderWith(const ModelConfig& config,
                                                      const DecoderOptions& options, Isa isa);

}  // namespace pace

#endif  // PACE_MODEL_CPU_CPU_DECODER_H_
