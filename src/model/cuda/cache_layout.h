// CacheLayout: where a token's key and value lie in a block of the GPU's cache.
//
// A block holds kBlockTokens keys and values of every key/value head of one
// layer. Elements lie in the order in which the sixteen-by-sixteen fragments of
// a tensor core want them: a warp reads a fragment with one 16-byte load per
// lane, 512 bytes in a row, and nothing passes through shared memory. Heads are
// padded with zeros to a width that the kernels are compiled for.
//
// Within a fragment lane 4g + t holds eight elements. Of keys: tokens
// (g / 2) * 4 + g % 2 and two further, four dimensions each. Of values:
// dimensions g and g + 8, four tokens each. So the tokens of a lane's four
// scores are those of its four values, and probabilities need no shuffle but a
// transposition.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_CUDA_CACHE_LAYOUT_H_
#define PACE_MODEL_CUDA_CACHE_LAYOUT_H_

#ifdef __CUDACC__
#define PACE_HOST_DEVICE __host__ __device__
#else
#define PACE_HOST_DEVICE
#endif

namespace pace::cuda {

inline constexpr int kPageTokens = 16;

// The widest head that there are kernels for.
inline constexpr int kMaxHeadDim = 128;

// 16, 32, 64 or 128. REQUIRES: 1 <= head_dim <= kMaxHeadDim
PACE_HOST_DEVICE constexpr int PaddedHeadDim(int head_dim) {
  int padded = 16;
  while (padded < head_dim) padded *= 2;
  return padded;
}

// Elements of the keys, and of the values, of one head in one block.
PACE_HOST_DEVICE constexpr int PageElements(int padded_dim) {
  return kPageTokens * padded_dim;
}

// REQUIRES: 0 <= token < kPageTokens
PACE_HOST_DEVICE constexpr int KeyIndex(int token, int dim) {
  const int group = token / 4 * 2 + token % 2;
  const int half = token / 2 % 2;
  return dim / 16 * 256 + (group * 4 + dim % 16 / 4) * 8 + half * 4 + dim % 4;
}

PACE_HOST_DEVICE constexpr int ValueIndex(int token, int dim) {
  return dim / 16 * 256 + (dim % 8 * 4 + token / 4) * 8 + dim / 8 % 2 * 4 + token % 4;
}

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_CACHE_LAYOUT_H_
