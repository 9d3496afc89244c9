// Sums over the policy tokens of each sequence.
#ifndef PACE_TRAIN_SEQUENCE_SUM_H_
#define PACE_TRAIN_SEQUENCE_SUM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/token_batch.h"

namespace pace {

struct SequenceSum {
  double sum = 0;
  int64_t num_tokens = 0;

  // 0 over nothing.
  double mean() const { return num_tokens > 0 ? sum / static_cast<double>(num_tokens) : 0; }
};

// The sum of value_of(token) over the policy tokens of each sequence.
template <typename ValueOf>
std::vector<SequenceSum> SumBySequence(const SequenceLayout& layout, const ValueOf& value_of) {
  std::vector<SequenceSum> sums(layout.num_sequences());
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] == 0) continue;
      sums[sequence].sum += value_of(token);
      ++sums[sequence].num_tokens;
    }
  }
  return sums;
}

}  // namespace pace

#endif  // PACE_TRAIN_SEQUENCE_SUM_H_
