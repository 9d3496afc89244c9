// Which tensors of an update are sent together, and what servers are told about them.
//
//   const std::vector<WeightChunk> chunks = CutChunks(sizes, int64_t{1} << 30);
//
// A chunk is one broadcast of the bytes of its tensors, without gaps.
//
// CutChunks is vLLM's rule: sender and receiver each compute the cuts from the sizes, in the order
// of names; other cuts on one side than on the other are broadcasts of different sizes, which never
// end. A chunk takes tensors until their sum exceeds the buffer's size, the one that exceeds it
// included; so a chunk is larger than the buffer, but for the last (vLLM 0.32,
// distributed/weight_transfer/packed_tensor.py).
//
// CutBuckets is for SGLang, which is told the tensors of each bucket and takes them as they come,
// if every tensor begins at a multiple of its element's size (SGLang 0.5.23,
// weight_sync/tensor_bucket.py). A bucket is at most the buffer's size, unless one tensor is
// larger. Thread-safety: functions of their arguments.
#ifndef PACE_ENGINES_PACKED_CHUNKS_H_
#define PACE_ENGINES_PACKED_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/json_writer.h"
#include "model/weight_set.h"

namespace pace {

struct WeightChunk {
  size_t first = 0;
  size_t count = 0;  // of tensors, at least 1
  int64_t num_bytes = 0;

  friend bool operator==(const WeightChunk&, const WeightChunk&) = default;
};

std::vector<WeightChunk> CutChunks(std::span<const int64_t> tensor_bytes, int64_t buffer_bytes);

struct TensorSize {
  int64_t num_bytes = 0;
  int64_t width = 1;  // of an element
};
std::vector<WeightChunk> CutBuckets(std::span<const TensorSize> tensors, int64_t buffer_bytes);

// The same of the tensors of `weights`, in their order.
std::vector<WeightChunk> ChunksOf(const WeightSet& weights, int64_t buffer_bytes);
std::vector<WeightChunk> BucketsOf(const WeightSet& weights, int64_t buffer_bytes);

// "names", `types_key` (torch's names of types) and "shapes": three lists with an entry for each
// tensor of the chunk. REQUIRES: within an object
void PutTensorLists(JsonWriter& json, const WeightSet& weights, const WeightChunk& chunk,
                    std::string_view types_key);

}  // namespace pace

#endif  // PACE_ENGINES_PACKED_CHUNKS_H_
