// RecomputePlan: which results of a layer stay in memory where layers are computed again.
//
// A layer whose input alone is kept is computed a second time in the backward pass. Each result
// that is kept as well spares the second run its computation. Results are chosen by the time that
// a byte saves until a budget is used up, the last layers first: their gradients come first, and
// then they are free.
//
// Thread-safety: plain data.
#ifndef PACE_MODEL_RECOMPUTE_PLAN_H_
#define PACE_MODEL_RECOMPUTE_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "model/model_config.h"

namespace pace {

struct KeptParts {
  bool qkv = false;        // queries, keys and values
  bool attention = false;  // its output and softmax statistics
  bool output = false;     // the sum after attention
  bool gate_up = false;    // gates and ups of a dense layer
  bool operator==(const KeptParts&) const = default;
};

// For each layer. `lengths` are those of the packed sequences, elements have two bytes.
std::vector<KeptParts> PlanRecompute(const ModelConfig& config, std::span<const int64_t> lengths,
                                     int64_t num_bytes);

// What the plan keeps for all layers.
int64_t KeptBytes(const ModelConfig& config, std::span<const int64_t> lengths,
                  std::span<const KeptParts> plan);

// Whether passes have differed in size lately: blocks of memory that are freed then do not fit the
// next pass, and more memory stays unused.
class PassSizes {
 public:
  // Of the next pass and the ones before it; true for the first ones.
  bool Change(int64_t num_rows);

 private:
  int64_t last_rows_ = 0;
  int64_t num_equal_ = 0;  // passes before the last that had its size
};

// Logits that are computed at a time on a GPU.
inline constexpr int64_t kMaxGpuLogits = int64_t{1} << 28;

// Activations of one layer that its backward pass reads, per token, in elements.
int64_t LayerElements(const ModelConfig& config);
// What a pass over `num_rows` tokens needs beside them, parameters and kept results: the inputs
// of all layers, one layer with its gradients or a part of the logits, and the vocabulary
// projection with its gradient.
int64_t PassBytes(const ModelConfig& config, int64_t num_rows);

}  // namespace pace

#endif  // PACE_MODEL_RECOMPUTE_PLAN_H_
