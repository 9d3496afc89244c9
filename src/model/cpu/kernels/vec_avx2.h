// Avx2: sixteen float lanes in two registers, with fused multiply-adds. See
// vec_portable.h for what each operation means; all levels agree to the bit.
//
// Kernels are templates over this type, so none of its code can be linked into
// another level: include it only in files that are compiled for it.
#ifndef PACE_MODEL_CPU_KERNELS_VEC_AVX2_H_
#define PACE_MODEL_CPU_KERNELS_VEC_AVX2_H_

#include <immintrin.h>

#include <cstdint>

namespace pace {

struct Avx2 {
  struct Vec {
    __m256 low;
    __m256 high;
  };
  // Tiles whose sums fill at most 12 of the 16 registers:
  static constexpr int kTileRows = 3;     // of a GEMM, one panel wide
  static constexpr int kPairRows = 1;     // of a GEMM, two panels wide
  static constexpr int kScoreRows = 3;    // of attention scores,
  static constexpr int kScoreBlocks = 2;  // by blocks of keys
  static constexpr int kValueRows = 3;    // of attention sums,
  static constexpr int kValueVecs = 2;    // by vectors of a value
  // Whether attention asks for its first keys and its values before it needs them.
  static constexpr bool kFetchesAhead = false;

  static Vec Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vec Broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Vec Load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
  static void Store(float* to, Vec x) {
    _mm256_storeu_ps(to, x.low);
    _mm256_storeu_ps(to + 8, x.high);
  }
  static Vec LoadFirst(const float* from, int64_t n) {
    return {_mm256_maskload_ps(from, Mask(n)), _mm256_maskload_ps(from + 8, Mask(n - 8))};
  }
  static void StoreFirst(float* to, Vec x, int64_t n) {
    _mm256_maskstore_ps(to, Mask(n), x.low);
    _mm256_maskstore_ps(to + 8, Mask(n - 8), x.high);
  }
  static Vec KeepFirst(Vec x, int64_t n, Vec rest) {
    return {_mm256_blendv_ps(rest.low, x.low, _mm256_castsi256_ps(Mask(n))),
            _mm256_blendv_ps(rest.high, x.high, _mm256_castsi256_ps(Mask(n - 8)))};
  }

  static Vec Add(Vec a, Vec b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static Vec Sub(Vec a, Vec b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  static Vec Mul(Vec a, Vec b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static Vec Div(Vec a, Vec b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static Vec Fma(Vec a, Vec b, Vec c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static Vec Min(Vec a, Vec b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  static Vec Max(Vec a, Vec b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }

  static Vec TimesPow2(Vec x, Vec n) { return Mul(x, {Pow2Half(n.low), Pow2Half(n.high)}); }
  static Vec ZeroWhereLess(Vec x, Vec limit, Vec value) {
    return {_mm256_and_ps(_mm256_cmp_ps(x.low, limit.low, _CMP_NLT_UQ), value.low),
            _mm256_and_ps(_mm256_cmp_ps(x.high, limit.high, _CMP_NLT_UQ), value.high)};
  }
  static uint32_t AtLeast(Vec x, Vec limit) {
    const int low = _mm256_movemask_ps(_mm256_cmp_ps(x.low, limit.low, _CMP_GE_OQ));
    const int high = _mm256_movemask_ps(_mm256_cmp_ps(x.high, limit.high, _CMP_GE_OQ));
    return static_cast<uint32_t>(low) | (static_cast<uint32_t>(high) << 8);
  }

  static float SumLanes(Vec x) {
    const __m256 eight = _mm256_add_ps(x.low, x.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float MaxLanes(Vec x) {
    const __m256 eight = _mm256_max_ps(x.low, x.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  static Vec LoadBf16(const uint16_t* from) { return {Bf16Half(from), Bf16Half(from + 8)}; }
  static void StoreBf16(uint16_t* to, Vec x) {
    // packus works within halves of a register; the permutation undoes it.
    const __m256i packed = _mm256_packus_epi32(RoundHalf(x.low), RoundHalf(x.high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(packed, 0xD8));
  }
  static void LoadPairs(const uint16_t* from, Vec& even, Vec& odd) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 16));
    const __m256i upper = _mm256_set1_epi32(-65536);
    even = {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
    odd = {_mm256_castsi256_ps(_mm256_and_si256(low, upper)),
           _mm256_castsi256_ps(_mm256_and_si256(high, upper))};
  }

 private:
  static __m256i Mask(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static __m256 Pow2Half(__m256 n) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  static __m256 Bf16Half(const uint16_t* from) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static __m256i RoundHalf(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7FFF));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
  }
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_VEC_AVX2_H_
