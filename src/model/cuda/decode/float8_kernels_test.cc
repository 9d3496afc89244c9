// Weights in eight bits: their rounding, and products that read them, against the rounded values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "model/cuda/decode/product_kernels.h"
#include "model/cuda/test_device.h"
#include "model/quantization.h"

namespace pace::cuda {
namespace {

// Matrix rows as a checkpoint has them, rounded on the device and on the host.
struct RoundedRows {
  RoundedRows(const Floats& rows, size_t width)
      : values(rows.size()), scales(rows.size() / width), halves(rows.size()), expected(rows) {
    const OnDevice<float> from(rows);
    RoundRows(from.get(), Source::kF32, static_cast<int64_t>(rows.size() / width),
              static_cast<int64_t>(width),
              {.values = values.get(),
               .scales = scales.get(),
               .rounded = halves.get(),
               .stride = static_cast<int64_t>(width),
               .element = Element::kHalf},
              nullptr);
    for (size_t at = 0; at < rows.size(); at += width) {
      RoundToFloat8(std::span(expected).subspan(at, width));
    }
    EXPECT_EQ(FromHalves(halves.Read()), expected);
  }

  OnDevice<uint8_t> values;
  OnDevice<float> scales;
  OnDevice<uint16_t> halves;
  Floats expected;
};

TEST_F(CudaKernelsTest, RoundingToEightBitsEqualsTheHosts) {
  const CounterRandom random(9, 1);
  Floats rows;
  for (size_t row = 0; row < 200; ++row) {
    const double size = std::exp2(30 * random.Normal(row));
    for (size_t i = 0; i < 48; ++i) {
      const double small = std::exp2(-static_cast<double>(i % 16));
      rows.push_back(static_cast<float>(size * small * random.Normal(1000 + 48 * row + i)));
    }
  }
  std::fill_n(rows.begin(), 48, 0.0F);
  const RoundedRows rounded(rows, 48);
  const Floats scales = rounded.scales.Read();
  for (size_t row = 0; row < scales.size(); ++row) {
    EXPECT_EQ(scales[row], Float8Scale(std::span(rows).subspan(48 * row, 48)));
  }
}

// Every code of the format, as a product converts it.
TEST_F(CudaKernelsTest, EveryEightBitValueIsConvertedExactly) {
  Floats rows;
  for (int sign = 0; sign < 2; ++sign) {
    for (int code = 0; code < 127; ++code) {
      const int exponent = code / 8;
      const double value =
          exponent == 0 ? std::ldexp(code % 8, -9) : std::ldexp(8 + code % 8, exponent - 10);
      // One value beside the largest, which sets the scale to one.
      rows.insert(rows.end(), {static_cast<float>(sign == 0 ? value : -value), 448});
      rows.insert(rows.end(), 14, 0.0F);
    }
  }
  const RoundedRows rounded(rows, 16);
  const auto count = rows.size() / 16;
  Floats x(3 * 16, 0.0F);
  x[0] = x[16] = 1;
  const OnDevice<uint16_t> device_x(Halves(x));
  const OnDevice<float> out(3 * count);
  StreamProduct({.weight = rounded.values.get(),
                 .scales = rounded.scales.get(),
                 .num_outputs = static_cast<int64_t>(count),
                 .num_inputs = 16,
                 .x = device_x.get(),
                 .x_stride = 16,
                 .num_rows = 3,
                 .out = out.get(),
                 .out_stride = static_cast<int64_t>(count)},
                nullptr);
  const Floats products = out.Read();
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(products[i], rows[16 * i]);
}

TEST_F(CudaKernelsTest, StreamedProductsReadEightBits) {
  struct Size {
    size_t rows, outputs, inputs;
  };
  for (const Size size : {Size{3, 53, 16}, Size{8, 200, 528}, Size{7, 33, 1008}, Size{5, 160, 96},
                          Size{8, 64, 2560}, Size{4, 100, 768}, Size{6, 96, 9728}}) {
    SCOPED_TRACE(testing::Message() << size.rows << "x" << size.inputs);
    const Floats x = Rounded(Random(size.rows * size.inputs, 20));
    const RoundedRows weight(Random(2 * size.outputs * size.inputs, 21, 0.05), size.inputs);
    const Floats bias = Random(2 * size.outputs, 22);
    const Floats before = Random(size.rows * size.outputs, 23);
    const OnDevice<uint16_t> device_x(Halves(x));
    const OnDevice<float> device_bias(bias);
    const OnDevice<float> added(before);
    const OnDevice<uint16_t> gated(before.size());
    StreamArguments arguments = {.weight = weight.values.get(),
                                 .scales = weight.scales.get(),
                                 .num_outputs = static_cast<int64_t>(size.outputs),
                                 .num_inputs = static_cast<int64_t>(size.inputs),
                                 .bias = device_bias.get(),
                                 .x = device_x.get(),
                                 .x_stride = static_cast<int64_t>(size.inputs),
                                 .num_rows = static_cast<int64_t>(size.rows),
                                 .out = added.get(),
                                 .out_stride = static_cast<int64_t>(size.outputs),
                                 .output = StreamOutput::kAdd};
    StreamProduct(arguments, nullptr);
    arguments.out = gated.get();
    arguments.output = StreamOutput::kGate;
    StreamProduct(arguments, nullptr);
    const auto at = [&](size_t row, size_t n) {
      const auto weights = weight.expected.begin() + static_cast<ptrdiff_t>(n * size.inputs);
      const auto inputs = x.begin() + static_cast<ptrdiff_t>(row * size.inputs);
      return std::inner_product(inputs, inputs + static_cast<ptrdiff_t>(size.inputs), weights, 0.0);
    };
    Floats expected_added(before.size());
    Floats expected_gated(before.size());
    for (size_t row = 0; row < size.rows; ++row) {
      for (size_t n = 0; n < size.outputs; ++n) {
        const size_t i = row * size.outputs + n;
        const double first = at(row, n) + bias[n];
        expected_added[i] = static_cast<float>(before[i] + first);
        expected_gated[i] =
            static_cast<float>(Silu(first) * (at(row, size.outputs + n) + bias[size.outputs + n]));
      }
    }
    EXPECT_LT(Distance(added.Read(), expected_added), 1e-5);
    EXPECT_LT(Distance(FromHalves(gated.Read()), expected_gated), 4e-3);
  }
}

// A mixture whose experts are there in eight bits and as the same values in halves.
struct EightBitExperts {
  size_t experts, hidden, width;
  RoundedRows gate_up{Random(experts * 2 * width * hidden, 61, 0.1), hidden};
  RoundedRows down{Random(experts * hidden * width, 62, 0.1), width};
  // Values of an expert's two matrices, then room for its scales.
  OnDevice<uint8_t> bytes{experts * stride()};

  size_t gate_bytes() const { return 2 * width * hidden; }
  size_t stride() const { return gate_bytes() + hidden * width + 4 * (2 * width + hidden); }

  EightBitExperts(size_t count, size_t inputs, size_t outputs)
      : experts(count), hidden(inputs), width(outputs) {
    const std::vector<uint8_t> gates = gate_up.values.Read();
    const std::vector<uint8_t> downs = down.values.Read();
    const Floats gate_scales = gate_up.scales.Read();
    const Floats down_scales = down.scales.Read();
    std::vector<uint8_t> all;
    const auto add = [&](const auto& from, size_t begin, size_t number) {
      const auto* const first = reinterpret_cast<const uint8_t*>(from.data() + begin);
      all.insert(all.end(), first, first + number * sizeof(from[0]));
    };
    for (size_t e = 0; e < experts; ++e) {
      add(gates, e * gate_bytes(), gate_bytes());
      add(downs, e * hidden * width, hidden * width);
      add(gate_scales, e * 2 * width, 2 * width);
      add(down_scales, e * hidden, hidden);
    }
    EXPECT_EQ(cudaMemcpy(bytes.get(), all.data(), all.size(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  const uint8_t* downs() const { return bytes.get() + gate_bytes(); }
  const float* gate_scales() const {
    return reinterpret_cast<const float*>(downs() + hidden * width);
  }
  const float* down_scales() const { return gate_scales() + 2 * width; }
};

TEST_F(CudaKernelsTest, ExpertsInEightBitsEqualThoseInHalves) {
  for (const int rows : {1, 2, 40}) {
    for (const size_t width : {size_t{32}, size_t{48}, size_t{768}, size_t{2064}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, width " << width);
      const int chosen = 3;
      const size_t hidden = 80;
      const EightBitExperts mixture(7, hidden, width);
      const auto slots = static_cast<size_t>(rows * chosen);
      std::vector<int32_t> choice(slots);
      for (size_t i = 0; i < slots; ++i) choice[i] = static_cast<int32_t>((i * 5 + i / 3) % 7);
      const OnDevice<int32_t> experts(choice);
      const OnDevice<float> shares(Random(slots, 63));
      const OnDevice<uint16_t> x(Halves(Random(static_cast<size_t>(rows) * hidden, 64)));
      const auto num_slots = static_cast<int64_t>(slots);

      // In halves, one warp for an output.
      const OnDevice<uint16_t> gated(slots * width);
      const OnDevice<float> outputs(slots * hidden);
      StreamArguments gate = {.weight = mixture.gate_up.halves.get(),
                              .num_outputs = static_cast<int64_t>(width),
                              .num_inputs = static_cast<int64_t>(hidden),
                              .x = x.get(),
                              .x_stride = static_cast<int64_t>(hidden),
                              .num_rows = rows,
                              .out = gated.get(),
                              .out_stride = static_cast<int64_t>(width),
                              .output = StreamOutput::kGate,
                              .expert_stride = static_cast<int64_t>(mixture.gate_bytes()),
                              .slots_per_row = chosen};
      PlainExperts(gate, experts.get(), num_slots, Element::kHalf, nullptr);
      StreamArguments down = {.weight = mixture.down.halves.get(),
                              .num_outputs = static_cast<int64_t>(hidden),
                              .num_inputs = static_cast<int64_t>(width),
                              .x = gated.get(),
                              .x_stride = static_cast<int64_t>(width),
                              .num_rows = rows,
                              .out = outputs.get(),
                              .out_stride = static_cast<int64_t>(hidden),
                              .expert_stride = static_cast<int64_t>(hidden * width)};
      PlainExperts(down, experts.get(), num_slots, Element::kHalf, nullptr);

      // The grouped products.
      const OnDevice<ExpertGroup> groups(static_cast<size_t>(MaxExpertGroups(num_slots, 7)));
      const OnDevice<int32_t> num_groups(1);
      GroupSlots(experts.get(), num_slots, 7, groups.get(), num_groups.get(), nullptr);
      const OnDevice<uint16_t> few_gated(slots * width);
      const OnDevice<float> few_outputs(slots * hidden);
      const auto stride = static_cast<int64_t>(mixture.stride());
      for (StreamArguments* const product : {&gate, &down}) {
        product->groups = groups.get();
        product->num_groups = num_groups.get();
        product->max_groups = MaxExpertGroups(num_slots, 7);
        product->expert_stride = stride;
      }
      gate.weight = mixture.bytes.get();
      gate.scales = mixture.gate_scales();
      gate.out = few_gated.get();
      StreamProduct(gate, nullptr);
      EXPECT_LT(Distance(FromHalves(few_gated.Read()), FromHalves(gated.Read())), 4e-3);
      down.weight = mixture.downs();
      down.scales = mixture.down_scales();
      down.out = few_outputs.get();
      StreamProduct(down, nullptr);
      EXPECT_LT(Distance(few_outputs.Read(), outputs.Read()), 1e-5);

      // Those of few rows.
      const Floats before = Random(static_cast<size_t>(rows) * hidden, 65);
      const OnDevice<float> sum(before);
      const OnDevice<float> few_sum(before);
      CombineExperts(sum.get(), static_cast<int64_t>(hidden), outputs.get(), shares.get(), rows,
                     static_cast<int64_t>(hidden), chosen, nullptr);
      const FewRowExperts few = {.gate_up = mixture.bytes.get(),
                                 .down = mixture.downs(),
                                 .gate_up_scales = mixture.gate_scales(),
                                 .down_scales = mixture.down_scales(),
                                 .expert_stride = stride,
                                 .width = static_cast<int64_t>(width),
                                 .num_inputs = static_cast<int64_t>(hidden),
                                 .num_outputs = static_cast<int64_t>(hidden),
                                 .num_rows = rows,
                                 .num_chosen = chosen,
                                 .experts = experts.get(),
                                 .weights = shares.get(),
                                 .x = x.get(),
                                 .gated = few_gated.get(),
                                 .gated_stride = static_cast<int64_t>(width),
                                 .out = few_sum.get(),
                                 .out_stride = static_cast<int64_t>(hidden)};
      if (!CanRunFewRows(few)) continue;
      RunFewRows(few, nullptr);
      EXPECT_LT(Distance(FromHalves(few_gated.Read()), FromHalves(gated.Read())), 4e-3);
      EXPECT_LT(Distance(few_sum.Read(), sum.Read()), 1e-3);
    }
  }
}

}  // namespace
}  // namespace pace::cuda
