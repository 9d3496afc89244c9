// The decoder on this machine's CPU.
#ifndef PACE_MODEL_CPU_CPU_DECODER_H_
#define PACE_MODEL_CPU_CPU_DECODER_H_

#include <memory>

#include "core/status.h"
#include "model/cpu/kernels/isa.h"
#include "model/decoder.h"

namespace pace {

// A decoder without weights, with the fastest kernels that the machine has.
Result<std::unique_ptr<Decoder>> CreateCpuDecoder(const ModelConfig& config,
                                                  const DecoderOptions& options);
// With kernels of the caller's choice, for tests and measurements.
// REQUIRES: `isa` is one of IsaLevels()
Result<std::unique_ptr<Decoder>> CreateCpuDecoderWith(const ModelConfig& config,
                                                      const DecoderOptions& options, Isa isa);

}  // namespace pace

#endif  // PACE_MODEL_CPU_CPU_DECODER_H_
