// Quantization: weights of rollouts rounded to eight bits.
//
// kFloat8 rounds the matrices of the layers (queries, keys, values, output, gates, ups and downs,
// of every expert) to e4m3: a sign, four bits of exponent, three of mantissa, values up to 448.
// Each row of a matrix, which makes one output, has a scale of its own. Embedding, head, routers,
// norms and biases stay as they are.
//
// Scales are powers of two. A floating-point format loses no precision by that, and scale times
// value is exact in bf16 and in float32. So a device may store eight bits and a scale, or the
// product in its own type: both mean the same weights.
//
// Thread-safety: pure functions.
#ifndef PACE_MODEL_QUANTIZATION_H_
#define PACE_MODEL_QUANTIZATION_H_

#include <span>
#include <string_view>

#include "model/model_config.h"
#include "model/weight_set.h"

namespace pace {

enum class Quantization { kNone, kFloat8 };

// Whether a parameter (NAME.weight of ParametersOf) is a matrix that is rounded.
bool IsQuantized(std::string_view parameter);

// The smallest power of two by which every element, divided, is at most 448, but at least 2^-100;
// 1 for zeros, NaN where an element is not finite.
float Float8Scale(std::span<const float> row);

// Rounds a row to scale times e4m3, ties to even. A row that is not finite becomes NaN.
void RoundToFloat8(std::span<float> row);

// The weights with every quantized matrix rounded; others are shared. REQUIRES: on the host
WeightSet RoundedToFloat8(const ModelConfig& config, const WeightSet& weights);

}  // namespace pace

#endif  // PACE_MODEL_QUANTIZATION_H_
