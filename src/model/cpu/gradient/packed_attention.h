// PackedAttention: causal attention of packed sequences, with its gradient.
//
// A token sees the earlier tokens of its own sequence and itself. Queries and
// keys are normed (where the network does) and rotated on the way in, so what a
// backward pass needs is the input, the output and a number per row and head:
// memory is linear in tokens. Scores exist for a few queries at a time.
//
// Products run on the kernels of inference (model/cpu/kernels.h): a block of
// queries with the heads that share a key head is the left side, and keys or
// values are packed as weights are. bf16 activations are multiplied in bf16
// where the machine has tiles for it, else in float32; sums and softmax are
// float32.
//
//   PackedAttention attention({.num_heads = 6, .head_dim = 64, .lengths = lengths});
//   attention.Forward(qkv, norms, out, log_sums);
//   attention.Backward(qkv, norms, out, log_sums, d_out, d_qkv, d_norms);
//
// Thread-safety: none; it reuses its memory.
#ifndef PACE_MODEL_CPU_GRADIENT_PACKED_ATTENTION_H_
#define PACE_MODEL_CPU_GRADIENT_PACKED_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "model/cpu/aligned_buffer.h"
#include "model/cpu/gradient/training_kernels.h"
#include "model/cpu/kernels/isa.h"
#include "model/cpu/kernels/kernels.h"

namespace pace {

class PackedAttention {
 public:
  struct Options {
    int64_t num_heads = 1;
    int64_t num_kv_heads = 1;
    int64_t head_dim = 2;
    float norm_epsilon = 0;
    std::vector<int64_t> lengths = {};  // of the sequences, which lie one after the other
    // [tokens][head_dim / 2]; they outlive it.
    const float* cosines = nullptr;
    const float* sines = nullptr;
  };
  explicit PackedAttention(Options options, Isa isa = BestIsa());

  // Weights of the norms of query and key heads; null = none.
  struct Norms {
    const float* query = nullptr;
    const float* key = nullptr;
  };
  struct NormGradients {
    float* query = nullptr;
    float* key = nullptr;
  };

  // T is float, or uint16_t for bf16. A row of qkv holds all query heads, key
  // heads and value heads; out [tokens][heads * head_dim], log_sums [tokens][heads].
  template <typename T>
  void Forward(const T* qkv, const Norms& norms, T* out, float* log_sums);
  // Writes d_qkv; adds to d_norms.
  template <typename T>
  void Backward(const T* qkv, const Norms& norms, const T* out, const float* log_sums,
                const T* d_out, T* d_qkv, const NormGradients& d_norms);

  // Memory that it keeps between calls: linear in the longest sequence.
  int64_t num_bytes() const;

 private:
  template <typename T, typename E>
  friend class AttentionPass;

  // Memory that grows and is used again.
  class Room {
   public:
    template <typename E>
    E* Take(int64_t count);
    int64_t num_bytes() const { return buffer_.num_bytes(); }

   private:
    AlignedBuffer buffer_;
  };
  enum Place {
    kQueries,
    kKeys,
    kValues,
    kOutGradients,
    kKeyOutputs,
    kKeyInputs,
    kValuePanels,
    kQueryPanels,
    kOutGradientPanels,
    kScores,
    kGradients,
    kRounded,
    kRoundedGradients,
    kColumns,
    kGradientColumns,
    kSums,
    kKeySums,
    kValueSums,
    kDeltas,
    kInverseSums,
    kNumPlaces
  };

  const Options options_;
  const Isa isa_;
  const Kernels& kernels_;
  const TrainingKernels& training_;
  std::vector<float> minus_sines_;
  Room rooms_[kNumPlaces];
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_GRADIENT_PACKED_ATTENTION_H_
