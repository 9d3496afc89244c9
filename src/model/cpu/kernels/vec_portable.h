// Portable: sixteen float lanes in plain C++, the meaning of each operation.
//
// Every multiply-add is fused, as on the other levels, so all levels agree to
// the bit. On a machine whose compiler target has no such instruction it is
// slow, and still right.
//
// Kernels are templates over this type, so none of its code can be linked into
// another level: include it only in files that are compiled for it.
#ifndef PACE_MODEL_CPU_KERNELS_VEC_PORTABLE_H_
#define PACE_MODEL_CPU_KERNELS_VEC_PORTABLE_H_

#include <cstdint>

namespace pace {

struct Portable {
  struct Vec {
    float lane[16];
  };
  // Tiles that kernels work in:
  static constexpr int kTileRows = 4;     // of a GEMM, one panel wide
  static constexpr int kPairRows = 1;     // of a GEMM, two panels wide
  static constexpr int kScoreRows = 2;    // of attention scores,
  static constexpr int kScoreBlocks = 2;  // by blocks of keys
  static constexpr int kValueRows = 2;    // of attention sums,
  static constexpr int kValueVecs = 2;    // by vectors of a value
  // Whether attention asks for its first keys and its values before it needs them.
  static constexpr bool kFetchesAhead = false;

  static Vec Zero() { return Broadcast(0); }
  static Vec Broadcast(float x) {
    return Each([x](int) { return x; });
  }
  static Vec Load(const float* from) {
    return Each([from](int i) { return from[i]; });
  }
  static void Store(float* to, const Vec& x) { StoreFirst(to, x, 16); }
  // The first n <= 16 lanes; the rest are 0.
  static Vec LoadFirst(const float* from, int64_t n) {
    return Each([from, n](int i) { return i < n ? from[i] : 0.0F; });
  }
  static void StoreFirst(float* to, const Vec& x, int64_t n) {
    for (int i = 0; i < n; ++i) to[i] = x.lane[i];
  }
  // x in the first n < 16 lanes, `rest` in the others.
  static Vec KeepFirst(const Vec& x, int64_t n, const Vec& rest) {
    return Each([&](int i) { return i < n ? x.lane[i] : rest.lane[i]; });
  }

  static Vec Add(const Vec& a, const Vec& b) {
    return Each([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static Vec Sub(const Vec& a, const Vec& b) {
    return Each([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static Vec Mul(const Vec& a, const Vec& b) {
    return Each([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static Vec Div(const Vec& a, const Vec& b) {
    return Each([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  // a * b + c, rounded once.
  static Vec Fma(const Vec& a, const Vec& b, const Vec& c) {
    return Each([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
  }
  // A NaN in b wins; one in a loses.
  static Vec Min(const Vec& a, const Vec& b) {
    return Each([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static Vec Max(const Vec& a, const Vec& b) {
    return Each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }

  // x * 2^n for whole n in [-126, 127].
  static Vec TimesPow2(const Vec& x, const Vec& n) {
    return Each([&](int i) {
      // A NaN must not reach the conversion.
      const int32_t whole = n.lane[i] == n.lane[i] ? static_cast<int32_t>(n.lane[i]) : 0;
      const uint32_t bits = static_cast<uint32_t>(whole + 127) << 23;
      return x.lane[i] * __builtin_bit_cast(float, bits);
    });
  }
  // `value`, but 0 where x < limit.
  static Vec ZeroWhereLess(const Vec& x, const Vec& limit, const Vec& value) {
    return Each([&](int i) { return x.lane[i] < limit.lane[i] ? 0.0F : value.lane[i]; });
  }
  // A bit per lane: x >= limit.
  static uint32_t AtLeast(const Vec& x, const Vec& limit) {
    uint32_t mask = 0;
    for (int i = 0; i < 16; ++i) mask |= x.lane[i] >= limit.lane[i] ? 1U << i : 0U;
    return mask;
  }

  // Lane i with lane i + 8, then 4, 2, 1.
  static float SumLanes(Vec x) {
    for (int step = 8; step > 0; step /= 2) {
      for (int i = 0; i < step; ++i) x.lane[i] += x.lane[i + step];
    }
    return x.lane[0];
  }
  static float MaxLanes(Vec x) {
    for (int step = 8; step > 0; step /= 2) {
      for (int i = 0; i < step; ++i) {
        x.lane[i] = x.lane[i] > x.lane[i + step] ? x.lane[i] : x.lane[i + step];
      }
    }
    return x.lane[0];
  }

  static Vec LoadBf16(const uint16_t* from) {
    return Each([from](int i) { return FromBf16(from[i]); });
  }
  // Rounds to nearest, ties to even; a NaN stays one.
  static void StoreBf16(uint16_t* to, const Vec& x) {
    for (int i = 0; i < 16; ++i) {
      const uint32_t bits = __builtin_bit_cast(uint32_t, x.lane[i]);
      const bool is_nan = x.lane[i] != x.lane[i];
      const uint32_t kept = is_nan ? bits | 0x400000U : bits + ((bits >> 16) & 1U) + 0x7FFFU;
      to[i] = static_cast<uint16_t>(kept >> 16);
    }
  }
  // Sixteen pairs of bf16: their first and second elements.
  static void LoadPairs(const uint16_t* from, Vec& even, Vec& odd) {
    even = Each([from](int64_t i) { return FromBf16(from[2 * i]); });
    odd = Each([from](int64_t i) { return FromBf16(from[2 * i + 1]); });
  }

 private:
  static float FromBf16(uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
  template <typename Fn>
  static Vec Each(Fn fn) {
    Vec result;
    for (int i = 0; i < 16; ++i) result.lane[i] = fn(i);
    return result;
  }
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_VEC_PORTABLE_H_
