#include "model/cpu/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "formats/float_encoding.h"
#include "model/cpu/kernels/isa.h"
#include "model/cpu/packed_matrix.h"
#include "model/cpu/random_floats.h"

namespace pace {
namespace {

struct Shape {
  int64_t num_rows = 1;
  int64_t num_inputs = 1;
  int64_t num_outputs = 1;
};

// One problem with everything that a product may have.
struct Problem {
  Shape shape;
  bool is_bf16 = false;
  bool has_bias = false;
  Epilogue epilogue = Epilogue::kStore;

  std::vector<float> x = {};
  std::vector<float> weights = {};  // [outputs, inputs]; gated: gates, then ups
  std::vector<float> bias = {};
  std::vector<float> before = {};  // what kAdd adds to

  int64_t out_width() const {
    return epilogue == Epilogue::kGated ? shape.num_outputs / 2 : shape.num_outputs;
  }
};

Problem MakeProblem(const Shape& shape, bool is_bf16, bool has_bias, Epilogue epilogue) {
  Problem problem{.shape = shape, .is_bf16 = is_bf16, .has_bias = has_bias, .epilogue = epilogue};
  problem.x = RandomFloats(shape.num_rows * shape.num_inputs, 1);
  problem.weights = RandomFloats(shape.num_outputs * shape.num_inputs, 2, 0.2);
  problem.bias = RandomFloats(shape.num_outputs, 3);
  problem.before = RandomFloats(shape.num_rows * problem.out_width(), 4);
  if (is_bf16) {
    for (float& value : problem.x) value = BF16ToFloat(FloatToBF16(value));
    for (float& value : problem.weights) value = BF16ToFloat(FloatToBF16(value));
  }
  return problem;
}

PackedMatrix PackProblem(const Problem& problem, const Kernels& kernels) {
  const int64_t num_inputs = problem.shape.num_inputs;
  const auto read_row = [&](int64_t output, float* row) {
    const auto from = problem.weights.begin() + output * num_inputs;
    std::copy(from, from + num_inputs, row);
  };
  const PackedMatrix::Source source = {
      .num_outputs = problem.shape.num_outputs,
      .num_inputs = num_inputs,
      .has_bias = problem.has_bias,
      .read_row = read_row,
      .read_bias = [&](int64_t output) { return problem.bias[static_cast<size_t>(output)]; }};
  const bool gated = problem.epilogue == Epilogue::kGated;
  return (gated ? PackGated : Pack)(kernels, source, problem.is_bf16).value();
}

// Rows [first, first + num_rows) of the result, computed by themselves.
std::vector<float> RunRows(const Problem& problem, Isa isa, int64_t num_threads, int64_t first,
                           int64_t num_rows) {
  const Kernels& kernels = KernelsOf(isa);
  ThreadPool threads(num_threads);
  const PackedMatrix matrix = PackProblem(problem, kernels);
  Activations x(problem.shape.num_inputs, problem.is_bf16);
  Activations out(problem.out_width(), false);
  x.Reserve(num_rows);
  out.Reserve(num_rows);
  for (int64_t row = 0; row < num_rows; ++row) {
    const float* const from = problem.x.data() + (first + row) * problem.shape.num_inputs;
    if (problem.is_bf16) {
      kernels.to_bf16(from, problem.shape.num_inputs, x.halves(row));
    } else {
      std::copy(from, from + problem.shape.num_inputs, x.floats(row));
    }
    const float* const before = problem.before.data() + (first + row) * problem.out_width();
    std::copy(before, before + problem.out_width(), out.floats(row));
  }
  const GemmProduct product = {.matrix = &matrix,
                               .x = x.data(),
                               .x_stride = x.stride(),
                               .num_rows = num_rows,
                               .epilogue = problem.epilogue,
                               .out_is_bf16 = false,
                               .out = out.data(),
                               .out_stride = out.stride()};
  Gemm(kernels, threads).Run({&product, 1});
  std::vector<float> result;
  for (int64_t row = 0; row < num_rows; ++row) {
    result.insert(result.end(), out.floats(row), out.floats(row) + problem.out_width());
    for (int64_t i = problem.out_width(); i < RoundUp(problem.out_width(), kPanelWidth); ++i) {
      EXPECT_EQ(out.floats(row)[i], 0.0F) << "columns behind the width stay 0";
    }
  }
  return result;
}

double NaiveSum(const Problem& problem, int64_t row, int64_t output) {
  double sum = problem.has_bias ? problem.bias[static_cast<size_t>(output)] : 0.0;
  for (int64_t k = 0; k < problem.shape.num_inputs; ++k) {
    sum += static_cast<double>(problem.x[static_cast<size_t>(row * problem.shape.num_inputs + k)]) *
           problem.weights[static_cast<size_t>(output * problem.shape.num_inputs + k)];
  }
  return sum;
}

double NaiveProduct(const Problem& problem, int64_t row, int64_t column) {
  const double sum = NaiveSum(problem, row, column);
  if (problem.epilogue == Epilogue::kStore) return sum;
  if (problem.epilogue == Epilogue::kAdd) {
    return sum + problem.before[static_cast<size_t>(row * problem.out_width() + column)];
  }
  const double up = NaiveSum(problem, row, column + problem.out_width());
  return sum / (1 + std::exp(-sum)) * up;
}

struct GemmLevel {
  Isa isa = Isa::kPortable;
  bool is_bf16 = false;
};

class GemmTest : public testing::TestWithParam<GemmLevel> {};

std::vector<GemmLevel> GemmLevels() {
  std::vector<GemmLevel> levels;
  for (const Isa isa : IsaLevels()) {
    for (const bool is_bf16 : {false, true}) levels.push_back({isa, is_bf16});
  }
  return levels;
}
std::string NameOfLevel(const testing::TestParamInfo<GemmLevel>& info) {
  return std::string(IsaName(info.param.isa)) + (info.param.is_bf16 ? "_bf16" : "_f32");
}
INSTANTIATE_TEST_SUITE_P(Levels, GemmTest, testing::ValuesIn(GemmLevels()), NameOfLevel);

TEST_P(GemmTest, AgreesWithNaiveSums) {
  const std::vector<Shape> shapes = {{1, 1, 2},    {3, 5, 2},    {2, 33, 70},   {7, 64, 32},
                                     {13, 20, 34}, {17, 96, 96}, {33, 31, 130}, {50, 7, 66}};
  for (const Shape& shape : shapes) {
    for (const Epilogue epilogue : {Epilogue::kStore, Epilogue::kAdd, Epilogue::kGated}) {
      for (const bool has_bias : {false, true}) {
        const Problem problem = MakeProblem(shape, GetParam().is_bf16, has_bias, epilogue);
        const std::vector<float> result = RunRows(problem, GetParam().isa, 1, 0, shape.num_rows);
        for (int64_t row = 0; row < shape.num_rows; ++row) {
          for (int64_t column = 0; column < problem.out_width(); ++column) {
            ASSERT_NEAR(result[static_cast<size_t>(row * problem.out_width() + column)],
                        NaiveProduct(problem, row, column), 2e-5)
                << row << ", " << column << " of " << shape.num_rows << " x " << shape.num_inputs
                << " x " << shape.num_outputs;
          }
        }
      }
    }
  }
}

TEST_P(GemmTest, RowsDependOnNeitherTheBatchNorTheThreads) {
  const Problem problem = MakeProblem({.num_rows = 70, .num_inputs = 37, .num_outputs = 100},
                                      GetParam().is_bf16, true, Epilogue::kGated);
  const std::vector<float> whole = RunRows(problem, GetParam().isa, 1, 0, 70);
  EXPECT_EQ(BitsOf(RunRows(problem, GetParam().isa, 3, 0, 70)), BitsOf(whole));
  const auto width = static_cast<size_t>(problem.out_width());
  for (int64_t num_rows = 1; num_rows <= 34; ++num_rows) {
    const int64_t first = (num_rows * 7) % (70 - num_rows);
    const auto from = whole.begin() + first * problem.out_width();
    const std::vector<float> expected(from, from + num_rows * problem.out_width());
    ASSERT_EQ(BitsOf(RunRows(problem, GetParam().isa, 1, first, num_rows)), BitsOf(expected))
        << num_rows << " rows of " << width;
  }
}

TEST_P(GemmTest, AgreesWithThePortableLevelToTheBit) {
  if (GetParam().isa == Isa::kNeonBf16 && GetParam().is_bf16) {
    GTEST_SKIP() << "BFMMLA rounds in another way";
  }
  for (const Shape& shape : {Shape{5, 96, 40}, Shape{20, 33, 64}, Shape{40, 70, 34}}) {
    const Problem problem = MakeProblem(shape, GetParam().is_bf16, true, Epilogue::kGated);
    EXPECT_EQ(BitsOf(RunRows(problem, GetParam().isa, 1, 0, shape.num_rows)),
              BitsOf(RunRows(problem, Isa::kPortable, 1, 0, shape.num_rows)));
  }
}

TEST_P(GemmTest, SeveralProductsInOneLoopAreThoseOfEachAlone) {
  const Kernels& kernels = KernelsOf(GetParam().isa);
  ThreadPool threads(2);
  const Problem problem = MakeProblem({.num_rows = 48, .num_inputs = 65, .num_outputs = 64},
                                      GetParam().is_bf16, false, Epilogue::kStore);
  const PackedMatrix matrix = PackProblem(problem, kernels);
  Activations x(65, problem.is_bf16);
  Activations out(64, false);
  x.Reserve(48);
  out.Reserve(48);
  for (int64_t row = 0; row < 48; ++row) {
    const float* const from = problem.x.data() + row * 65;
    if (problem.is_bf16) {
      kernels.to_bf16(from, 65, x.halves(row));
    } else {
      std::copy(from, from + 65, x.floats(row));
    }
  }
  std::vector<GemmProduct> products;
  for (const auto& [first, num_rows] : {std::pair{0, 1}, {1, 0}, {1, 20}, {21, 3}, {24, 24}}) {
    products.push_back({.matrix = &matrix,
                        .x = x.bytes(first),
                        .x_stride = x.stride(),
                        .num_rows = num_rows,
                        .epilogue = Epilogue::kStore,
                        .out_is_bf16 = false,
                        .out = out.bytes(first),
                        .out_stride = out.stride()});
  }
  Gemm(kernels, threads).Run(products);
  std::vector<float> together;
  for (int64_t row = 0; row < 48; ++row) {
    together.insert(together.end(), out.floats(row), out.floats(row) + 64);
  }
  EXPECT_EQ(BitsOf(together), BitsOf(RunRows(problem, GetParam().isa, 1, 0, 48)));
}

}  // namespace
}  // namespace pace
