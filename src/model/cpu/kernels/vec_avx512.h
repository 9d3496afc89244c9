// Avx512: sixteen float lanes in one register. See vec_portable.h for what each
// operation means; all levels agree to the bit.
//
// Kernels are templates over this type, so none of its code can be linked into
// another level: include it only in files that are compiled for it.
#ifndef PACE_MODEL_CPU_KERNELS_VEC_AVX512_H_
#define PACE_MODEL_CPU_KERNELS_VEC_AVX512_H_

#include <immintrin.h>

#include <cstdint>

namespace pace {

struct Avx512 {
  using Vec = __m512;
  // Tiles whose sums fill 24 of the 32 registers:
  static constexpr int kTileRows = 12;    // of a GEMM, one panel wide
  static constexpr int kPairRows = 6;     // of a GEMM, two panels wide
  static constexpr int kScoreRows = 6;    // of attention scores,
  static constexpr int kScoreBlocks = 4;  // by blocks of keys
  static constexpr int kValueRows = 6;    // of attention sums,
  static constexpr int kValueVecs = 4;    // by vectors of a value
  // Whether attention asks for its first keys and its values before it needs them.
  static constexpr bool kFetchesAhead = false;

  static Vec Zero() { return _mm512_setzero_ps(); }
  static Vec Broadcast(float x) { return _mm512_set1_ps(x); }
  static Vec Load(const float* from) { return _mm512_loadu_ps(from); }
  static void Store(float* to, Vec x) { _mm512_storeu_ps(to, x); }
  static Vec LoadFirst(const float* from, int64_t n) {
    return _mm512_maskz_loadu_ps(FirstMask(n), from);
  }
  static void StoreFirst(float* to, Vec x, int64_t n) {
    _mm512_mask_storeu_ps(to, FirstMask(n), x);
  }
  static Vec KeepFirst(Vec x, int64_t n, Vec rest) {
    return _mm512_mask_blend_ps(FirstMask(n), rest, x);
  }

  static Vec Add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec Sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static Vec Mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static Vec Div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
  static Vec Fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
  static Vec Min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
  static Vec Max(Vec a, Vec b) { return _mm512_max_ps(a, b); }

  static Vec TimesPow2(Vec x, Vec n) { return _mm512_scalef_ps(x, n); }
  static Vec ZeroWhereLess(Vec x, Vec limit, Vec value) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), value);
  }
  static uint32_t AtLeast(Vec x, Vec limit) { return _mm512_cmp_ps_mask(x, limit, _CMP_GE_OQ); }

  static float SumLanes(Vec x) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float MaxLanes(Vec x) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  static Vec LoadBf16(const uint16_t* from) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static void StoreBf16(uint16_t* to, Vec x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7FFF));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i kept = _mm512_mask_blend_epi32(is_nan, rounded, quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
  }
  static void LoadPairs(const uint16_t* from, Vec& even, Vec& odd) {
    const __m512i bits = _mm512_loadu_si512(from);
    even = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
    odd = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(-65536)));
  }

 private:
  static __mmask16 FirstMask(int64_t n) { return static_cast<__mmask16>((1U << n) - 1); }
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_VEC_AVX512_H_
