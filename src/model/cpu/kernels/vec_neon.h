// Neon: sixteen float lanes in four registers. See vec_portable.h for what each
// operation means; all levels agree to the bit.
//
// Kernels are templates over this type, so none of its code can be linked into
// another level: include it only in files that are compiled for it.
#ifndef PACE_MODEL_CPU_KERNELS_VEC_NEON_H_
#define PACE_MODEL_CPU_KERNELS_VEC_NEON_H_

#include <arm_neon.h>

#include <cstdint>

namespace pace {

struct Neon {
  // Lanes 0 to 3, 4 to 7, 8 to 11, 12 to 15.
  struct Vec {
    float32x4_t a;
    float32x4_t b;
    float32x4_t c;
    float32x4_t d;
  };
  // Tiles whose sums fill at most 16 of the 32 registers:
  static constexpr int kTileRows = 2;     // of a GEMM, one panel wide
  static constexpr int kPairRows = 1;     // of a GEMM, two panels wide
  static constexpr int kScoreRows = 4;    // of attention scores,
  static constexpr int kScoreBlocks = 1;  // by blocks of keys
  static constexpr int kValueRows = 4;    // of attention sums,
  static constexpr int kValueVecs = 1;    // by vectors of a value
  // Whether attention asks for its first keys and its values before it needs them.
  static constexpr bool kFetchesAhead = true;

  static Vec Zero() { return Broadcast(0); }
  static Vec Broadcast(float x) {
    const float32x4_t all = vdupq_n_f32(x);
    return {all, all, all, all};
  }
  static Vec Load(const float* from) {
    return {vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)};
  }
  static void Store(float* to, Vec x) {
    vst1q_f32(to, x.a);
    vst1q_f32(to + 4, x.b);
    vst1q_f32(to + 8, x.c);
    vst1q_f32(to + 12, x.d);
  }
  static Vec LoadFirst(const float* from, int64_t n) {
    float padded[16] = {};
    for (int64_t i = 0; i < n; ++i) padded[i] = from[i];
    return Load(padded);
  }
  static void StoreFirst(float* to, Vec x, int64_t n) {
    float all[16];
    Store(all, x);
    for (int64_t i = 0; i < n; ++i) to[i] = all[i];
  }
  static Vec KeepFirst(Vec x, int64_t n, Vec rest) {
    return {vbslq_f32(First(n), x.a, rest.a), vbslq_f32(First(n - 4), x.b, rest.b),
            vbslq_f32(First(n - 8), x.c, rest.c), vbslq_f32(First(n - 12), x.d, rest.d)};
  }

  static Vec Add(Vec x, Vec y) {
    return {vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b), vaddq_f32(x.c, y.c), vaddq_f32(x.d, y.d)};
  }
  static Vec Sub(Vec x, Vec y) {
    return {vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b), vsubq_f32(x.c, y.c), vsubq_f32(x.d, y.d)};
  }
  static Vec Mul(Vec x, Vec y) {
    return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b), vmulq_f32(x.c, y.c), vmulq_f32(x.d, y.d)};
  }
  static Vec Div(Vec x, Vec y) {
    return {vdivq_f32(x.a, y.a), vdivq_f32(x.b, y.b), vdivq_f32(x.c, y.c), vdivq_f32(x.d, y.d)};
  }
  static Vec Fma(Vec x, Vec y, Vec sum) {
    return {vfmaq_f32(sum.a, x.a, y.a), vfmaq_f32(sum.b, x.b, y.b), vfmaq_f32(sum.c, x.c, y.c),
            vfmaq_f32(sum.d, x.d, y.d)};
  }
  // By comparison: the instructions for minimum and maximum return a NaN of either side.
  static Vec Min(Vec x, Vec y) {
    return {MinPart(x.a, y.a), MinPart(x.b, y.b), MinPart(x.c, y.c), MinPart(x.d, y.d)};
  }
  static Vec Max(Vec x, Vec y) {
    return {MaxPart(x.a, y.a), MaxPart(x.b, y.b), MaxPart(x.c, y.c), MaxPart(x.d, y.d)};
  }

  static Vec TimesPow2(Vec x, Vec n) {
    return Mul(x, {Pow2Part(n.a), Pow2Part(n.b), Pow2Part(n.c), Pow2Part(n.d)});
  }
  static Vec ZeroWhereLess(Vec x, Vec limit, Vec value) {
    return {KeepPart(vcltq_f32(x.a, limit.a), value.a), KeepPart(vcltq_f32(x.b, limit.b), value.b),
            KeepPart(vcltq_f32(x.c, limit.c), value.c), KeepPart(vcltq_f32(x.d, limit.d), value.d)};
  }
  static uint32_t AtLeast(Vec x, Vec limit) {
    const uint16x8_t low =
        vcombine_u16(vmovn_u32(vcgeq_f32(x.a, limit.a)), vmovn_u32(vcgeq_f32(x.b, limit.b)));
    const uint16x8_t high =
        vcombine_u16(vmovn_u32(vcgeq_f32(x.c, limit.c)), vmovn_u32(vcgeq_f32(x.d, limit.d)));
    const uint8x8_t bits = vcreate_u8(0x8040201008040201U);
    const uint32_t low_mask = vaddv_u8(vand_u8(vmovn_u16(low), bits));
    const uint32_t high_mask = vaddv_u8(vand_u8(vmovn_u16(high), bits));
    return low_mask | (high_mask << 8);
  }

  static float SumLanes(Vec x) {
    const float32x4_t four = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  static float MaxLanes(Vec x) {
    const float32x4_t four = MaxPart(MaxPart(x.a, x.c), MaxPart(x.b, x.d));
    const float first = Larger(vgetq_lane_f32(four, 0), vgetq_lane_f32(four, 2));
    return Larger(first, Larger(vgetq_lane_f32(four, 1), vgetq_lane_f32(four, 3)));
  }

  static Vec LoadBf16(const uint16_t* from) {
    const uint16x8_t low = vld1q_u16(from);
    const uint16x8_t high = vld1q_u16(from + 8);
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(low), 16)),
            vreinterpretq_f32_u32(vshll_high_n_u16(low, 16)),
            vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(high), 16)),
            vreinterpretq_f32_u32(vshll_high_n_u16(high, 16))};
  }
  static void StoreBf16(uint16_t* to, Vec x) {
    vst1q_u16(to, vcombine_u16(RoundPart(x.a), RoundPart(x.b)));
    vst1q_u16(to + 8, vcombine_u16(RoundPart(x.c), RoundPart(x.d)));
  }
  static void LoadPairs(const uint16_t* from, Vec& even, Vec& odd) {
    const uint32x4_t a = vreinterpretq_u32_u16(vld1q_u16(from));
    const uint32x4_t b = vreinterpretq_u32_u16(vld1q_u16(from + 8));
    const uint32x4_t c = vreinterpretq_u32_u16(vld1q_u16(from + 16));
    const uint32x4_t d = vreinterpretq_u32_u16(vld1q_u16(from + 24));
    even = {EvenPart(a), EvenPart(b), EvenPart(c), EvenPart(d)};
    odd = {OddPart(a), OddPart(b), OddPart(c), OddPart(d)};
  }

  // Of four pairs.
  static float32x4_t EvenPart(uint32x4_t pairs) {
    return vreinterpretq_f32_u32(vshlq_n_u32(pairs, 16));
  }
  static float32x4_t OddPart(uint32x4_t pairs) {
    return vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xFFFF0000U)));
  }

 private:
  static uint32x4_t First(int64_t n) {
    const int32_t indices[4] = {0, 1, 2, 3};
    return vcltq_s32(vld1q_s32(indices), vdupq_n_s32(static_cast<int32_t>(n)));
  }
  static float Larger(float x, float y) { return x > y ? x : y; }
  static float32x4_t MinPart(float32x4_t x, float32x4_t y) {
    return vbslq_f32(vcltq_f32(x, y), x, y);
  }
  static float32x4_t MaxPart(float32x4_t x, float32x4_t y) {
    return vbslq_f32(vcgtq_f32(x, y), x, y);
  }
  static float32x4_t KeepPart(uint32x4_t is_zero, float32x4_t value) {
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(value), is_zero));
  }
  // The conversion of a NaN is 0.
  static float32x4_t Pow2Part(float32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
  }
  static uint16x4_t RoundPart(float32x4_t x) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, odd), vdupq_n_u32(0x7FFF));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16);
  }
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_VEC_NEON_H_
