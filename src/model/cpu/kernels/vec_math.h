// Mathematics on sixteen lanes, for kernels: templates over a vector level (see
// vec_portable.h). Everything that kernels share is such a template, so that no
// code of one level is ever linked into another.
#ifndef PACE_MODEL_CPU_KERNELS_VEC_MATH_H_
#define PACE_MODEL_CPU_KERNELS_VEC_MATH_H_

namespace pace {

// e^x within one unit in the last place; 0 below -87.3, and at most 2^127.5.
template <typename V>
[[gnu::always_inline]] inline typename V::Vec Exp(typename V::Vec x) {
  const auto lowest = V::Broadcast(-0x1.5d58p6F);  // where results would be subnormal
  const auto bounded = V::Min(V::Broadcast(0x1.6180p6F), V::Max(lowest, x));
  // Adding and subtracting 1.5 * 2^23 rounds to a whole number.
  const auto magic = V::Broadcast(0x1.8p23F);
  const auto n = V::Sub(V::Fma(bounded, V::Broadcast(0x1.715476p0F), magic), magic);
  auto r = V::Fma(n, V::Broadcast(-0x1.62e4p-1F), bounded);
  r = V::Fma(n, V::Broadcast(-0x1.7f7d1cp-20F), r);
  // Minimax in the relative error over |r| <= ln(2) / 2.
  auto p = V::Broadcast(0x1.6a2434p-10F);
  p = V::Fma(p, r, V::Broadcast(0x1.1239e2p-7F));
  p = V::Fma(p, r, V::Broadcast(0x1.5558f2p-5F));
  p = V::Fma(p, r, V::Broadcast(0x1.555492p-3F));
  p = V::Fma(p, r, V::Broadcast(0x1.fffffcp-2F));
  p = V::Fma(p, r, V::Broadcast(1.0F));
  p = V::Fma(p, r, V::Broadcast(1.0F));
  return V::ZeroWhereLess(x, lowest, V::TimesPow2(p, n));
}

// x / (1 + e^-x)
template <typename V>
[[gnu::always_inline]] inline typename V::Vec Silu(typename V::Vec x) {
  const auto one = V::Broadcast(1.0F);
  return V::Div(x, V::Add(one, Exp<V>(V::Sub(V::Zero(), x))));
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_VEC_MATH_H_
