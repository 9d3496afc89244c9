// CutChunks: which tensors vLLM's packed weight transfer sends together.
//
//   const std::vector<WeightChunk> chunks = CutChunks(sizes, int64_t{1} << 30);
//
// Sender and receiver each compute the cuts from the sizes, in the order of names; other cuts on
// one side than on the other are broadcasts of different sizes, which never end. A chunk takes
// tensors until their sum exceeds the buffer's size, the one that exceeds it included; so a chunk
// is larger than the buffer, but for the last (vLLM 0.32,
// distributed/weight_transfer/packed_tensor.py). Thread-safety: a function of its arguments.
#ifndef PACE_ENGINES_PACKED_CHUNKS_H_
#define PACE_ENGINES_PACKED_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pace {

struct WeightChunk {
  size_t first = 0;
  size_t count = 0;  // of tensors, at least 1
  int64_t num_bytes = 0;

  friend bool operator==(const WeightChunk&, const WeightChunk&) = default;
};

std::vector<WeightChunk> CutChunks(std::span<const int64_t> tensor_bytes, int64_t buffer_bytes);

}  // namespace pace

#endif  // PACE_ENGINES_PACKED_CHUNKS_H_
