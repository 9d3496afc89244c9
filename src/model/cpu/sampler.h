// Sample and LogProbOf of sampling.h, with kernels of the caller's choice.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_CPU_SAMPLER_H_
#define PACE_MODEL_CPU_SAMPLER_H_

#include <span>
#include <vector>

#include "model/cpu/kernels/kernels.h"
#include "model/sampling.h"

namespace pace {

Sampled SampleWith(const Kernels& kernels, std::span<const float> logits,
                   const SamplingOptions& options, const SampleKey& key,
                   std::vector<float>& scratch);

float LogProbWith(const Kernels& kernels, std::span<const float> logits, double scale,
                  TokenId target);

}  // namespace pace

#endif  // PACE_MODEL_CPU_SAMPLER_H_
