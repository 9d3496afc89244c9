// Kernels of rows against plain computations of the same.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "model/cuda/kernels.h"
#include "model/cuda/test_device.h"

namespace pace::cuda {
namespace {

TEST_F(CudaKernelsTest, NormsRowsThatAreAskedFor) {
  constexpr int64_t kWidth = 300;
  constexpr int64_t kStride = 304;
  const Floats x = Random(5 * kStride, 1, 3);
  const Floats weight = Random(kWidth, 2);
  const std::vector<int32_t> rows = {4, 0, 2};
  Floats expected(3 * kStride);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<size_t>(rows[i] * kStride);
    double squares = 0;
    for (size_t d = 0; d < kWidth; ++d) squares += static_cast<double>(x[at + d]) * x[at + d];
    for (size_t d = 0; d < kWidth; ++d) {
      expected[i * kStride + d] =
          static_cast<float>(x[at + d] / std::sqrt(squares / kWidth + 1e-5) * weight[d]);
    }
  }
  const OnDevice<float> device_x(x);
  const OnDevice<float> device_weight(weight);
  const OnDevice<int32_t> device_rows(rows);
  const OnDevice<float> floats(expected.size());
  const OnDevice<uint16_t> halves(expected.size());
  NormArguments arguments = {.x = device_x.get(),
                             .rows = device_rows.get(),
                             .weight = device_weight.get(),
                             .epsilon = 1e-5F,
                             .num_rows = 3,
                             .width = kWidth,
                             .stride = kStride,
                             .out = floats.get(),
                             .element = Element::kFloat};
  Norm(arguments, nullptr);
  arguments.out = halves.get();
  arguments.element = Element::kHalf;
  Norm(arguments, nullptr);
  EXPECT_LT(Distance(floats.Read(), expected), 1e-6);
  EXPECT_LT(Distance(FromHalves(halves.Read()), expected), 4e-3);
}

TEST_F(CudaKernelsTest, GatesWithAndWithoutBias) {
  constexpr int64_t kWidth = 2500;
  const Floats gate_up = Rounded(Random(3 * 2 * kWidth, 3));
  const Floats bias = Random(2 * kWidth, 4);
  const OnDevice<float> floats(gate_up);
  const OnDevice<uint16_t> halves(Halves(gate_up));
  const OnDevice<float> device_bias(bias);
  for (const bool has_bias : {false, true}) {
    Floats expected(3 * 2504);
    for (size_t row = 0; row < 3; ++row) {
      for (size_t i = 0; i < kWidth; ++i) {
        const double g = gate_up[row * 2 * kWidth + i] + (has_bias ? bias[i] : 0);
        const double u = gate_up[row * 2 * kWidth + kWidth + i] + (has_bias ? bias[kWidth + i] : 0);
        expected[row * 2504 + i] = static_cast<float>(Silu(g) * u);
      }
    }
    const OnDevice<float> out(expected.size());
    const OnDevice<uint16_t> half_out(expected.size());
    GateArguments arguments = {.gate_up = floats.get(),
                               .bias = has_bias ? device_bias.get() : nullptr,
                               .element = Element::kFloat,
                               .num_rows = 3,
                               .width = kWidth,
                               .out = out.get(),
                               .out_stride = 2504};
    Gate(arguments, nullptr);
    arguments.gate_up = halves.get();
    arguments.out = half_out.get();
    arguments.element = Element::kHalf;
    Gate(arguments, nullptr);
    EXPECT_LT(Distance(out.Read(), expected), 1e-6);
    EXPECT_LT(Distance(FromHalves(half_out.Read()), expected), 4e-3);
  }
}

TEST_F(CudaKernelsTest, RotatesAndWritesTheCache) {
  for (const int dim : {6, 20, 64, 128}) {
    const Sequences s =
        Sequences::Of({{0, 3}, {37, 1}, {15, 4}, {9, dim == 64 ? 520 : 1}}, 6, 2, dim);
    const auto width = static_cast<size_t>((6 + 4) * dim);
    const Floats qkv = Random(s.num_rows() * width, 5);
    const Floats bias = Random(width, 6);
    const Floats q_norm = Random(static_cast<size_t>(dim), 7);
    const Floats k_norm = Random(static_cast<size_t>(dim), 8);
    const Floats frequencies = Random(static_cast<size_t>(dim / 2), 9, 0.3);
    const auto padded = static_cast<size_t>(s.padded());
    Floats queries(s.num_rows() * 6 * padded);
    Floats cache(s.cache_elements());
    for (size_t row = 0; row < s.num_rows(); ++row) {
      for (size_t head = 0; head < 10; ++head) {
        std::vector<double> x(static_cast<size_t>(dim));
        double squares = 0;
        for (size_t d = 0; d < x.size(); ++d) {
          x[d] = static_cast<double>(qkv[row * width + head * x.size() + d]) +
                 bias[head * x.size() + d];
          squares += x[d] * x[d];
        }
        const int position = s.positions[row];
        if (head < 8) {
          const Floats& norm = head < 6 ? q_norm : k_norm;
          for (size_t d = 0; d < x.size(); ++d) x[d] *= norm[d] / std::sqrt(squares / dim + 1e-6);
          for (size_t i = 0; i < x.size() / 2; ++i) {
            const double angle = static_cast<float>(position) * frequencies[i];
            const double low = x[i];
            const double high = x[i + x.size() / 2];
            x[i] = low * std::cos(angle) - high * std::sin(angle);
            x[i + x.size() / 2] = high * std::cos(angle) + low * std::sin(angle);
          }
        }
        const auto block = static_cast<size_t>(
            s.blocks[static_cast<size_t>(s.tables[row] + position / kPageTokens)]);
        const size_t page = ((block * 2 + head % 2) * 2 + (head >= 8 ? 1 : 0)) *
                            static_cast<size_t>(PageElements(s.padded()));
        for (int d = 0; d < dim; ++d) {
          const auto value = static_cast<float>(x[static_cast<size_t>(d)]);
          if (head < 6) {
            queries[(row * 6 + head) * padded + static_cast<size_t>(d)] = value;
          } else {
            const int at = head >= 8 ? ValueIndex(position % kPageTokens, d)
                                     : KeyIndex(position % kPageTokens, d);
            cache[page + static_cast<size_t>(at)] = value;
          }
        }
      }
    }
    const OnDevice<float> device_qkv(qkv);
    const OnDevice<float> device_bias(bias);
    const OnDevice<float> device_q_norm(q_norm);
    const OnDevice<float> device_k_norm(k_norm);
    const OnDevice<float> device_frequencies(frequencies);
    const OnDevice<int32_t> positions(s.positions);
    const OnDevice<int32_t> tables(s.tables);
    const OnDevice<int32_t> blocks(s.blocks);
    const OnDevice<float> device_queries(queries.size());
    const OnDevice<float> device_cache(cache.size());
    Rotate({.qkv = device_qkv.get(),
            .qkv_stride = static_cast<int64_t>(width),
            .bias = device_bias.get(),
            .q_norm = device_q_norm.get(),
            .k_norm = device_k_norm.get(),
            .epsilon = 1e-6F,
            .frequencies = device_frequencies.get(),
            .num_heads = 6,
            .num_rows = static_cast<int64_t>(s.num_rows()),
            .rows = {.tokens = nullptr,
                     .positions = positions.get(),
                     .tables = tables.get(),
                     .blocks = blocks.get()},
            .cache = {.at = device_cache.get(),
                      .element = Element::kFloat,
                      .num_kv_heads = 2,
                      .head_dim = dim},
            .queries = device_queries.get()},
           nullptr);
    EXPECT_LT(Distance(device_queries.Read(), queries), 1e-5) << dim;
    EXPECT_LT(Distance(device_cache.Read(), cache), 1e-5) << dim;
  }
}

}  // namespace
}  // namespace pace::cuda
