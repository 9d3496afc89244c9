#include "engines/packed_chunks.h"

namespace pace {

std::vector<WeightChunk> CutChunks(std::span<const int64_t> tensor_bytes, int64_t buffer_bytes) {
  std::vector<WeightChunk> chunks;
  WeightChunk open;
  for (size_t i = 0; i < tensor_bytes.size(); ++i) {
    ++open.count;
    open.num_bytes += tensor_bytes[i];
    if (open.num_bytes <= buffer_bytes) continue;
    chunks.push_back(open);
    open = {.first = i + 1};
  }
  if (open.count > 0) chunks.push_back(open);
  return chunks;
}

}  // namespace pace
