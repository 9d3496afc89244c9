// The order of the rows of q and k projections: two conventions for rotary
// embeddings.
//
// Rotation turns pairs of rows of a head together. Hugging Face pairs row i with
// row i + head_dim / 2 ("halves"); llama2.c and the GGUF files of architecture
// `llama` pair row 2i with row 2i + 1 ("interleaved"). The two hold the same
// numbers in another order of rows, within each head.
//
//   halves[head, j * head_dim / 2 + i] = interleaved[head, 2 * i + j],  j = 0, 1
//
// Thread-safety: pure functions.
#ifndef PACE_FORMATS_ROPE_ROWS_H_
#define PACE_FORMATS_ROPE_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace pace {

// `rows` holds num_heads * head_dim rows of equal length: a weight matrix, or a
// bias, whose rows have length 1.
// REQUIRES: head_dim even, num_heads > 0, rows.size() a multiple of their product
std::vector<float> InterleavedToHalves(std::span<const float> rows, int64_t num_heads,
                                       int64_t head_dim);
std::vector<float> HalvesToInterleaved(std::span<const float> rows, int64_t num_heads,
                                       int64_t head_dim);

}  // namespace pace

#endif  // PACE_FORMATS_ROPE_ROWS_H_
