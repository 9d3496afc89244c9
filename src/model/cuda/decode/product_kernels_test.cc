// Products of few rows and mixtures of experts against plain ones.
#include "model/cuda/decode/product_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "model/cuda/test_device.h"

namespace pace::cuda {
namespace {

// x weight^T in double, then in float.
Floats PlainProduct(const Floats& x, const Floats& weight, size_t num_rows, size_t num_outputs,
                    size_t num_inputs) {
  Floats out(num_rows * num_outputs);
  for (size_t row = 0; row < num_rows; ++row) {
    for (size_t n = 0; n < num_outputs; ++n) {
      double sum = 0;
      for (size_t k = 0; k < num_inputs; ++k) {
        sum += static_cast<double>(x[row * num_inputs + k]) * weight[n * num_inputs + k];
      }
      out[row * num_outputs + n] = static_cast<float>(sum);
    }
  }
  return out;
}

TEST_F(CudaKernelsTest, StreamedProductsEqualPlainOnes) {
  struct Size {
    size_t rows, outputs, inputs;
  };
  for (const Size size :
       {Size{1, 53, 24}, Size{3, 40, 8}, Size{8, 200, 520}, Size{7, 33, 1000}, Size{5, 160, 96},
        Size{8, 64, 2560}, Size{4, 100, 768}, Size{1, 5000, 256}, Size{2, 96, 9728}}) {
    const Floats x = Rounded(Random(size.rows * size.inputs, 20));
    const Floats weight = Rounded(Random(2 * size.outputs * size.inputs, 21, 0.05));
    const Floats bias = Random(2 * size.outputs, 22);
    const Floats before = Random(size.rows * size.outputs, 23);
    const Floats product = PlainProduct(x, weight, size.rows, 2 * size.outputs, size.inputs);
    const auto at = [&](size_t row, size_t n) { return product[row * 2 * size.outputs + n]; };
    const OnDevice<uint16_t> device_x(Halves(x));
    const OnDevice<uint16_t> device_weight(Halves(weight));
    const OnDevice<float> device_bias(bias);
    const OnDevice<float> stored(before.size());
    const OnDevice<float> added(before);
    const OnDevice<uint16_t> gated(before.size());
    StreamArguments arguments = {.weight = device_weight.get(),
                                 .num_outputs = static_cast<int64_t>(size.outputs),
                                 .num_inputs = static_cast<int64_t>(size.inputs),
                                 .bias = nullptr,
                                 .x = device_x.get(),
                                 .x_stride = static_cast<int64_t>(size.inputs),
                                 .num_rows = static_cast<int64_t>(size.rows),
                                 .out = stored.get(),
                                 .out_stride = static_cast<int64_t>(size.outputs)};
    StreamProduct(arguments, nullptr);
    arguments.bias = device_bias.get();
    arguments.out = added.get();
    arguments.output = StreamOutput::kAdd;
    StreamProduct(arguments, nullptr);
    arguments.out = gated.get();
    arguments.output = StreamOutput::kGate;
    StreamProduct(arguments, nullptr);
    Floats expected_stored(before.size());
    Floats expected_added(before.size());
    Floats expected_gated(before.size());
    for (size_t row = 0; row < size.rows; ++row) {
      for (size_t n = 0; n < size.outputs; ++n) {
        const size_t i = row * size.outputs + n;
        expected_stored[i] = at(row, n);
        expected_added[i] = before[i] + at(row, n) + bias[n];
        expected_gated[i] = static_cast<float>(
            Silu(at(row, n) + bias[n]) * (at(row, size.outputs + n) + bias[size.outputs + n]));
      }
    }
    EXPECT_LT(Distance(stored.Read(), expected_stored), 1e-5) << size.rows << "x" << size.inputs;
    EXPECT_LT(Distance(added.Read(), expected_added), 1e-5) << size.rows << "x" << size.inputs;
    EXPECT_LT(Distance(FromHalves(gated.Read()), expected_gated), 4e-3)
        << size.rows << "x" << size.inputs;
  }
}

TEST_F(CudaKernelsTest, StreamedProductsNormOnTheWay) {
  constexpr size_t kWidth = 1020;
  constexpr size_t kStride = 1024;
  for (const size_t rows : {1U, 2U}) {
    Floats x = Random(rows * kStride, 30, 2);
    const Floats norm = Random(kWidth, 31);
    Floats weight = Rounded(Random(70 * kStride, 32, 0.05));
    for (size_t i = 0; i < weight.size(); ++i) {
      if (i % kStride >= kWidth) weight[i] = 0;
    }
    Floats normed(rows * kStride);
    for (size_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (size_t i = 0; i < kWidth; ++i) {
        squares += static_cast<double>(x[row * kStride + i]) * x[row * kStride + i];
      }
      for (size_t i = 0; i < kWidth; ++i) {
        normed[row * kStride + i] =
            static_cast<float>(x[row * kStride + i] * norm[i] / std::sqrt(squares / kWidth + 1e-6));
      }
    }
    const OnDevice<float> device_x(x);
    const OnDevice<float> device_norm(norm);
    const OnDevice<uint16_t> device_weight(Halves(weight));
    const OnDevice<float> out(rows * 70);
    StreamProduct({.weight = device_weight.get(),
                   .num_outputs = 70,
                   .num_inputs = kStride,
                   .x = device_x.get(),
                   .x_stride = kStride,
                   .num_rows = static_cast<int64_t>(rows),
                   .norm_weight = device_norm.get(),
                   .norm_width = kWidth,
                   .epsilon = 1e-6F,
                   .out = out.get(),
                   .out_stride = 70},
                  nullptr);
    EXPECT_LT(Distance(out.Read(), PlainProduct(normed, weight, rows, 70, kStride)), 5e-3);
  }
}

TEST_F(CudaKernelsTest, RoutesGroupsAndCombinesExperts) {
  constexpr int kRows = 40;
  constexpr int kExperts = 9;
  constexpr int kChosen = 3;
  constexpr int kInputs = 48;
  constexpr int kWidth = 30;
  constexpr int kWidthStride = 32;
  const Floats logits = Random(kRows * kExperts, 40, 2);
  const OnDevice<float> device_logits(logits);
  const OnDevice<int32_t> experts(kRows * kChosen);
  const OnDevice<float> weights(kRows * kChosen);
  Route({.logits = device_logits.get(),
         .stride = kExperts,
         .num_rows = kRows,
         .num_experts = kExperts,
         .num_chosen = kChosen,
         .normalize = true,
         .experts = experts.get(),
         .weights = weights.get()},
        nullptr);
  const std::vector<int32_t> chosen = experts.Read();
  const Floats shares = weights.Read();
  for (size_t row = 0; row < kRows; ++row) {
    std::vector<int32_t> order(kExperts);
    for (int32_t e = 0; e < kExperts; ++e) order[static_cast<size_t>(e)] = e;
    const float* const of = logits.data() + row * kExperts;
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return of[a] > of[b]; });
    double total = 0;
    for (size_t c = 0; c < kChosen; ++c) total += std::exp(of[order[c]]);
    for (size_t c = 0; c < kChosen; ++c) {
      EXPECT_EQ(chosen[row * kChosen + c], order[c]);
      EXPECT_NEAR(shares[row * kChosen + c], std::exp(of[order[c]]) / total, 1e-6);
    }
  }
  // The grouped products against the plain ones.
  const OnDevice<uint16_t> x(Halves(Random(kRows * kInputs, 41)));
  const size_t expert_size = 2 * kWidth * kInputs + 64 * kWidthStride;
  const OnDevice<uint16_t> matrices(Halves(Random(kExperts * expert_size, 42, 0.2)));
  const OnDevice<ExpertGroup> groups(
      static_cast<size_t>(MaxExpertGroups(kRows * kChosen, kExperts)));
  const OnDevice<int32_t> num_groups(1);
  GroupSlots(experts.get(), kRows * kChosen, kExperts, groups.get(), num_groups.get(), nullptr);
  const int32_t count = num_groups.Read()[0];
  std::multiset<int32_t> slots;
  const std::vector<ExpertGroup> formed = groups.Read();
  for (int32_t g = 0; g < count; ++g) {
    const ExpertGroup& group = formed[static_cast<size_t>(g)];
    for (int32_t i = 0; i < group.num_slots; ++i) {
      slots.insert(group.slots[i]);
      EXPECT_EQ(chosen[static_cast<size_t>(group.slots[i])], group.expert);
    }
  }
  EXPECT_EQ(slots.size(), static_cast<size_t>(kRows * kChosen));
  EXPECT_EQ(std::set<int32_t>(slots.begin(), slots.end()).size(), slots.size());

  StreamArguments gate = {.weight = matrices.get(),
                          .num_outputs = kWidth,
                          .num_inputs = kInputs,
                          .x = x.get(),
                          .x_stride = kInputs,
                          .num_rows = kRows,
                          .out_stride = kWidthStride,
                          .output = StreamOutput::kGate,
                          .groups = groups.get(),
                          .num_groups = num_groups.get(),
                          .max_groups = MaxExpertGroups(kRows * kChosen, kExperts),
                          .expert_stride = static_cast<int64_t>(expert_size),
                          .slots_per_row = kChosen};
  const OnDevice<uint16_t> plain_gated(kRows * kChosen * kWidthStride);
  const OnDevice<uint16_t> fast_gated(kRows * kChosen * kWidthStride);
  gate.out = plain_gated.get();
  PlainExperts(gate, experts.get(), kRows * kChosen, Element::kHalf, nullptr);
  gate.out = fast_gated.get();
  StreamProduct(gate, nullptr);
  EXPECT_LT(Distance(FromHalves(fast_gated.Read()), FromHalves(plain_gated.Read())), 4e-3);

  StreamArguments down = gate;
  down.weight = matrices.get() + 2 * kWidth * kInputs;
  down.num_outputs = 60;
  down.num_inputs = kWidthStride;
  down.x = plain_gated.get();
  down.x_stride = kWidthStride;
  down.out_stride = 64;
  down.output = StreamOutput::kStore;
  down.slots_per_row = 1;
  const OnDevice<float> plain_out(kRows * kChosen * 64);
  const OnDevice<float> fast_out(kRows * kChosen * 64);
  down.out = plain_out.get();
  PlainExperts(down, experts.get(), kRows * kChosen, Element::kHalf, nullptr);
  down.out = fast_out.get();
  StreamProduct(down, nullptr);
  const Floats outputs = plain_out.Read();
  EXPECT_LT(Distance(fast_out.Read(), outputs), 1e-5);

  const Floats before = Random(kRows * 64, 43);
  const OnDevice<float> sum(before);
  CombineExperts(sum.get(), 64, plain_out.get(), weights.get(), kRows, 60, kChosen, nullptr);
  Floats expected = before;
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t c = 0; c < kChosen; ++c) {
      for (size_t i = 0; i < 60; ++i) {
        expected[row * 64 + i] += shares[row * kChosen + c] * outputs[(row * kChosen + c) * 64 + i];
      }
    }
  }
  EXPECT_LT(Distance(sum.Read(), expected), 1e-5);
}

// Of one or two rows, on the device: what the kernels for few rows and those for many both read.
struct FewRows {
  int rows, experts, chosen;
  size_t hidden, hidden_stride, width, width_stride;
  bool normalize;

  size_t expert_size() const { return 2 * width * hidden_stride + hidden_stride * width_stride; }
  size_t slots() const { return static_cast<size_t>(rows * chosen); }
};

void CompareFewRows(const FewRows& s, const Floats& router) {
  const auto stride = static_cast<int64_t>(s.hidden_stride);
  const size_t residual_size = static_cast<size_t>(s.rows) * s.hidden_stride;
  const OnDevice<float> x(Random(residual_size, 50, 2));
  const OnDevice<float> norm(Random(s.hidden, 51));
  const OnDevice<uint16_t> device_router(Halves(router));
  const OnDevice<uint16_t> matrices(
      Halves(Random(static_cast<size_t>(s.experts) * s.expert_size(), 52, 0.1)));
  const OnDevice<int32_t> experts(s.slots());
  const OnDevice<float> weights(s.slots());
  const OnDevice<int32_t> few_experts(s.slots());
  const OnDevice<float> few_weights(s.slots());
  const OnDevice<uint16_t> normed(std::vector<uint16_t>(residual_size, 0));
  const OnDevice<uint16_t> few_normed(residual_size);
  const OnDevice<float> logits(static_cast<size_t>(s.rows * s.experts));

  Norm({.x = x.get(),
        .weight = norm.get(),
        .epsilon = 1e-6F,
        .num_rows = s.rows,
        .width = static_cast<int64_t>(s.hidden),
        .stride = stride,
        .out = normed.get(),
        .element = Element::kHalf},
       nullptr);
  StreamArguments product = {.weight = device_router.get(),
                             .num_outputs = s.experts,
                             .num_inputs = stride,
                             .x = normed.get(),
                             .x_stride = stride,
                             .num_rows = s.rows,
                             .out = logits.get(),
                             .out_stride = s.experts};
  StreamProduct(product, nullptr);
  RouteArguments route = {.logits = logits.get(),
                          .stride = s.experts,
                          .num_rows = s.rows,
                          .num_experts = s.experts,
                          .num_chosen = s.chosen,
                          .normalize = s.normalize,
                          .experts = experts.get(),
                          .weights = weights.get()};
  Route(route, nullptr);
  product.x = x.get();
  product.norm_weight = norm.get();
  product.norm_width = static_cast<int64_t>(s.hidden);
  product.epsilon = 1e-6F;
  route.experts = few_experts.get();
  route.weights = few_weights.get();
  ASSERT_TRUE(CanRouteRows(product, route));
  RouteRows(product, route, few_normed.get(), nullptr);
  EXPECT_EQ(few_experts.Read(), experts.Read());
  EXPECT_LT(Distance(few_weights.Read(), weights.Read()), 1e-3);
  EXPECT_LT(Distance(FromHalves(few_normed.Read()), FromHalves(normed.Read())), 1e-3);

  const auto width_stride = static_cast<int64_t>(s.width_stride);
  const OnDevice<uint16_t> gated(std::vector<uint16_t>(s.slots() * s.width_stride));
  const OnDevice<uint16_t> few_gated(std::vector<uint16_t>(s.slots() * s.width_stride));
  const OnDevice<float> outputs(s.slots() * s.hidden_stride);
  const Floats before = Random(residual_size, 53);
  const OnDevice<float> sum(before);
  const OnDevice<float> few_sum(before);
  const auto expert_stride = static_cast<int64_t>(s.expert_size());
  const auto num_slots = static_cast<int64_t>(s.slots());
  const StreamArguments gate = {.weight = matrices.get(),
                                .num_outputs = static_cast<int64_t>(s.width),
                                .num_inputs = stride,
                                .x = normed.get(),
                                .x_stride = stride,
                                .num_rows = s.rows,
                                .out = gated.get(),
                                .out_stride = width_stride,
                                .output = StreamOutput::kGate,
                                .expert_stride = expert_stride,
                                .slots_per_row = s.chosen};
  PlainExperts(gate, experts.get(), num_slots, Element::kHalf, nullptr);
  const StreamArguments down = {.weight = matrices.get() + 2 * s.width * s.hidden_stride,
                                .num_outputs = static_cast<int64_t>(s.hidden),
                                .num_inputs = width_stride,
                                .x = gated.get(),
                                .x_stride = width_stride,
                                .num_rows = s.rows,
                                .out = outputs.get(),
                                .out_stride = stride,
                                .expert_stride = expert_stride};
  PlainExperts(down, experts.get(), num_slots, Element::kHalf, nullptr);
  CombineExperts(sum.get(), stride, outputs.get(), weights.get(), s.rows,
                 static_cast<int64_t>(s.hidden), s.chosen, nullptr);
  const FewRowExperts few = {.gate_up = gate.weight,
                             .down = down.weight,
                             .expert_stride = expert_stride,
                             .width = gate.num_outputs,
                             .num_inputs = stride,
                             .num_outputs = down.num_outputs,
                             .num_rows = s.rows,
                             .num_chosen = s.chosen,
                             .experts = few_experts.get(),
                             .weights = few_weights.get(),
                             .x = normed.get(),
                             .gated = few_gated.get(),
                             .gated_stride = width_stride,
                             .out = few_sum.get(),
                             .out_stride = stride};
  ASSERT_TRUE(CanRunFewRows(few));
  RunFewRows(few, nullptr);
  EXPECT_LT(Distance(FromHalves(few_gated.Read()), FromHalves(gated.Read())), 4e-3);
  EXPECT_LT(Distance(few_sum.Read(), sum.Read()), 1e-3);
}

TEST_F(CudaKernelsTest, ExpertsOfFewRowsEqualThoseOfMany) {
  for (const FewRows& s :
       {FewRows{1, 9, 3, 44, 48, 30, 32, true}, FewRows{2, 5, 5, 44, 48, 30, 32, false},
        FewRows{1, 128, 8, 2048, 2048, 16, 16, true}, FewRows{2, 130, 8, 1028, 1032, 24, 24, true},
        FewRows{1, 6, 4, 2600, 2600, 1100, 1104, true}, FewRows{2, 300, 1, 256, 256, 8, 8, false},
        FewRows{1, 20, 16, 4096, 4096, 40, 40, true}}) {
    SCOPED_TRACE(testing::Message() << s.rows << " rows, " << s.experts << " experts");
    Floats router = Random(static_cast<size_t>(s.experts) * s.hidden_stride, 54, 0.05);
    for (size_t i = 0; i < router.size(); ++i) {
      if (i % s.hidden_stride >= s.hidden) router[i] = 0;
    }
    CompareFewRows(s, router);
    // Equal logits: the first experts.
    std::fill(router.begin(), router.end(), 0.0F);
    CompareFewRows(s, router);
  }
}

}  // namespace
}  // namespace pace::cuda
