// RopeTable: cosines and sines of the rotary embedding, by position.
//
// Angles are position * frequency in float32, as `transformers` computes them.
// Thread-safety: none while it grows; reads are safe.
#ifndef PACE_MODEL_CPU_ROPE_TABLE_H_
#define PACE_MODEL_CPU_ROPE_TABLE_H_

#include <cstdint>
#include <vector>

#include "model/model_config.h"

namespace pace {

class RopeTable {
 public:
  explicit RopeTable(const ModelConfig& config) : frequencies_(RopeFrequencies(config)) {}

  int64_t half() const { return static_cast<int64_t>(frequencies_.size()); }
  // Makes positions [0, num_positions) readable.
  void Reserve(int64_t num_positions);
  // half() values each. REQUIRES: reserved
  const float* cosines(int64_t position) const { return row(position); }
  const float* sines(int64_t position) const { return row(position) + half(); }

 private:
  const float* row(int64_t position) const { return values_.data() + position * 2 * half(); }

  std::vector<float> frequencies_;
  std::vector<float> values_;  // by position: cosines, then sines
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_ROPE_TABLE_H_
