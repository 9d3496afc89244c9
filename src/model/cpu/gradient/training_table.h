// The training kernels of one level as a table: a template over that level.
#ifndef PACE_MODEL_CPU_GRADIENT_TRAINING_TABLE_H_
#define PACE_MODEL_CPU_GRADIENT_TRAINING_TABLE_H_

#include "model/cpu/gradient/panel_impl.h"
#include "model/cpu/gradient/row_gradients_impl.h"
#include "model/cpu/gradient/softmax_gradients_impl.h"
#include "model/cpu/gradient/training_kernels.h"

namespace pace {

template <typename V, typename T>
constexpr TrainingKernels::Of<T> TrainingTableOf() {
  return {.norm = &NormRows<V, T>,
          .norm_gradient = &NormGradientRows<V, T>,
          .gated = &GatedRows<V, T>,
          .gated_gradient = &GatedGradientRows<V, T>,
          .pack_outputs = &PackOutputs<V, T>,
          .pack_inputs = &PackInputs<V, T>,
          .transpose = &Transpose<V, T>,
          .logit_gradient = &LogitGradient<V, T>};
}

template <typename V>
constexpr TrainingKernels TrainingTable() {
  return {.f32 = TrainingTableOf<V, float>(),
          .bf16 = TrainingTableOf<V, uint16_t>(),
          .score_gradient = &ScoreGradient<V>,
          .exp_moments = &ExpMoments<V>,
          .dot = &Dot<V>};
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_GRADIENT_TRAINING_TABLE_H_
