// Sampling as sampling.h defines it, on the CPU.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_CPU_SAMPLER_H_
#define PACE_MODEL_CPU_SAMPLER_H_

#include <span>
#include <vector>

#include "model/cpu/kernels/kernels.h"
#include "model/sampling.h"

namespace pace {

// REQUIRES: logits not empty, options valid. `scratch` is reused between calls.
Sampled Sample(std::span<const float> logits, const SamplingOptions& options, const SampleKey& key,
               std::vector<float>& scratch);

// log softmax(logits / scale)[target].
float LogProbOf(std::span<const float> logits, double scale, TokenId target);

// With kernels of the caller's choice.
Sampled SampleWith(const Kernels& kernels, std::span<const float> logits,
                   const SamplingOptions& options, const SampleKey& key,
                   std::vector<float>& scratch);

float LogProbWith(const Kernels& kernels, std::span<const float> logits, double scale,
                  TokenId target);

}  // namespace pace

#endif  // PACE_MODEL_CPU_SAMPLER_H_
