// HeadRows: heads on their way between the rows of a network and the rows of
// attention's products, with what lies between: norms, rotation, rounding.
//
// Elements of the network's rows are T, those of products E; float, or uint16_t
// for bf16. Arithmetic is float32.
// Thread-safety: none; it uses one head's memory again.
#ifndef PACE_MODEL_CPU_GRADIENT_HEAD_ROWS_H_
#define PACE_MODEL_CPU_GRADIENT_HEAD_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "model/cpu/gradient/packed_attention.h"
#include "model/cpu/gradient/training_kernels.h"
#include "model/cpu/kernels/kernels.h"

namespace pace {

template <typename T, typename E>
class HeadRows {
 public:
  // `depth` is how long a row of a product is: head_dim, or more. `minus_sines`
  // are the negated sines of the options.
  HeadRows(const PackedAttention::Options& options, const Kernels& kernels,
           const TrainingKernels& training, const float* minus_sines, int64_t depth)
      : options_(options),
        kernels_(kernels),
        training_(training),
        minus_sines_(minus_sines),
        dim_(options.head_dim),
        depth_(depth),
        head_(static_cast<size_t>(2 * dim_)) {}

  // A head as it stands.
  void Load(const T* from, E* to) {
    ToFloats(from, head_.data());
    StoreRow(head_.data(), to);
  }
  // A query or key of a token: normed where `norm` is not null, and rotated.
  void LoadTurned(const T* from, const float* norm, int64_t token, E* to) {
    ToFloats(from, head_.data());
    if (norm != nullptr) {
      kernels_.rms_norm(head_.data(), norm, dim_, options_.norm_epsilon, head_.data());
    }
    kernels_.rotate(head_.data(), options_.cosines + token * dim_ / 2,
                    options_.sines + token * dim_ / 2, dim_ / 2);
    StoreRow(head_.data(), to);
  }
  // An output's gradient; returns its product with the output.
  float LoadGradient(const T* d_out, const T* out, E* to) {
    ToFloats(d_out, head_.data());
    ToFloats(out, head_.data() + dim_);
    StoreRow(head_.data(), to);
    return training_.dot(head_.data(), head_.data() + dim_, dim_);
  }

  void Store(const float* from, T* to) const {
    if constexpr (std::is_same_v<T, float>) {
      std::memcpy(to, from, static_cast<size_t>(dim_) * sizeof(float));
    } else {
      kernels_.to_bf16(from, dim_, to);
    }
  }
  // The gradient of what LoadTurned gave, back to what it was given; `g` is used up,
  // and d_norm gains its part.
  void StoreTurnedGradient(float* g, const T* x, const float* norm, int64_t token, float* d_norm,
                           T* to) {
    kernels_.rotate(g, options_.cosines + token * dim_ / 2, minus_sines_ + token * dim_ / 2,
                    dim_ / 2);
    if (norm != nullptr) {
      ToFloats(x, head_.data());
      training_.f32.norm_gradient(g, head_.data(), norm, options_.norm_epsilon, 1, dim_, g, d_norm);
    }
    Store(g, to);
  }

 private:
  void ToFloats(const T* from, float* to) const {
    if constexpr (std::is_same_v<T, float>) {
      std::memcpy(to, from, static_cast<size_t>(dim_) * sizeof(float));
    } else {
      kernels_.from_bf16(from, dim_, to);
    }
  }
  // What the depth adds is 0.
  void StoreRow(const float* from, E* to) const {
    if constexpr (std::is_same_v<E, float>) {
      std::memcpy(to, from, static_cast<size_t>(dim_) * sizeof(float));
    } else {
      kernels_.to_bf16(from, dim_, to);
    }
    std::fill(to + dim_, to + depth_, E{0});
  }

  const PackedAttention::Options& options_;
  const Kernels& kernels_;
  const TrainingKernels& training_;
  const float* const minus_sines_;
  const int64_t dim_;
  const int64_t depth_;
  std::vector<float> head_;  // and another after it
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_GRADIENT_HEAD_ROWS_H_
