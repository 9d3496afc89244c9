#include "model/cpu/gradient/packed_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "formats/float_encoding.h"
#include "model/cpu/random_floats.h"

namespace pace {
namespace {

struct Shape {
  int64_t num_heads = 1;
  int64_t num_kv_heads = 1;
  int64_t head_dim = 2;
  bool has_norms = true;
  std::vector<int64_t> lengths = {};

  int64_t num_tokens() const {
    int64_t sum = 0;
    for (const int64_t length : lengths) sum += length;
    return sum;
  }
  int64_t row() const { return (num_heads + 2 * num_kv_heads) * head_dim; }
};

constexpr float kEpsilon = 1e-5F;

// Inputs of one problem, as floats that bf16 can hold where it computes in bf16.
struct Problem {
  explicit Problem(const Shape& given, bool is_bf16) : shape(given) {
    const int64_t half = shape.head_dim / 2;
    qkv = RandomFloats(shape.num_tokens() * shape.row(), 1);
    d_out = RandomFloats(shape.num_tokens() * shape.num_heads * shape.head_dim, 2);
    query_norm = RandomFloats(shape.head_dim, 3);
    key_norm = RandomFloats(shape.head_dim, 4);
    for (int64_t t = 0; t < shape.num_tokens(); ++t) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(t) * std::pow(0.7, static_cast<double>(i));
        cosines.push_back(static_cast<float>(std::cos(angle)));
        sines.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    if (!is_bf16) return;
    for (float& value : qkv) value = BF16ToFloat(FloatToBF16(value));
    for (float& value : d_out) value = BF16ToFloat(FloatToBF16(value));
  }

  Shape shape;
  std::vector<float> qkv, d_out, query_norm, key_norm, cosines, sines;
};

// A head as attention sees it, in double.
std::vector<double> Turned(const Problem& problem, const std::vector<double>& qkv, int64_t token,
                           int64_t at, const std::vector<float>& norm) {
  const int64_t dim = problem.shape.head_dim;
  std::vector<double> x(qkv.begin() + token * problem.shape.row() + at,
                        qkv.begin() + token * problem.shape.row() + at + dim);
  if (problem.shape.has_norms) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(dim) + kEpsilon);
    for (size_t i = 0; i < x.size(); ++i) x[i] *= scale * norm[i];
  }
  std::vector<double> turned(x.size());
  const auto half = static_cast<size_t>(dim / 2);
  for (size_t i = 0; i < half; ++i) {
    const double c = problem.cosines[static_cast<size_t>(token) * half + i];
    const double s = problem.sines[static_cast<size_t>(token) * half + i];
    turned[i] = x[i] * c - x[half + i] * s;
    turned[half + i] = x[half + i] * c + x[i] * s;
  }
  return turned;
}

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The naive definition, of one sequence's query head.
void NaiveHead(const Problem& problem, const std::vector<double>& qkv, int64_t begin,
               int64_t length, int64_t head, std::vector<double>& out) {
  const Shape& shape = problem.shape;
  const int64_t dim = shape.head_dim;
  const int64_t kv_head = head / (shape.num_heads / shape.num_kv_heads);
  const int64_t key_at = (shape.num_heads + kv_head) * dim;
  for (int64_t t = 0; t < length; ++t) {
    const std::vector<double> query =
        Turned(problem, qkv, begin + t, head * dim, problem.query_norm);
    std::vector<double> shares;
    double sum = 0;
    for (int64_t u = 0; u <= t; ++u) {
      const std::vector<double> key = Turned(problem, qkv, begin + u, key_at, problem.key_norm);
      shares.push_back(std::exp(Dot(query, key) / std::sqrt(static_cast<double>(dim))));
      sum += shares.back();
    }
    for (int64_t u = 0; u <= t; ++u) {
      const int64_t value_at = (begin + u) * shape.row() + key_at + shape.num_kv_heads * dim;
      for (int64_t i = 0; i < dim; ++i) {
        out[static_cast<size_t>((begin + t) * shape.num_heads * dim + head * dim + i)] +=
            shares[static_cast<size_t>(u)] / sum * qkv[static_cast<size_t>(value_at + i)];
      }
    }
  }
}

std::vector<double> NaiveForward(const Problem& problem, const std::vector<double>& qkv) {
  const Shape& shape = problem.shape;
  std::vector<double> out(
      static_cast<size_t>(shape.num_tokens() * shape.num_heads * shape.head_dim));
  int64_t begin = 0;
  for (const int64_t length : shape.lengths) {
    for (int64_t head = 0; head < shape.num_heads; ++head) {
      NaiveHead(problem, qkv, begin, length, head, out);
    }
    begin += length;
  }
  return out;
}

double NaiveLoss(const Problem& problem, const std::vector<double>& qkv) {
  const std::vector<double> out = NaiveForward(problem, qkv);
  double loss = 0;
  for (size_t i = 0; i < out.size(); ++i) loss += out[i] * problem.d_out[i];
  return loss;
}

struct Results {
  std::vector<float> out, d_qkv, d_query_norm, d_key_norm;
};

std::vector<uint16_t> Rounded(const std::vector<float>& values) {
  std::vector<uint16_t> rounded;
  for (const float value : values) rounded.push_back(FloatToBF16(value));
  return rounded;
}
std::vector<float> Floats(const std::vector<uint16_t>& values) {
  std::vector<float> floats;
  for (const uint16_t value : values) floats.push_back(BF16ToFloat(value));
  return floats;
}

Results Compute(const Problem& problem, Isa isa, bool is_bf16, int64_t* num_bytes = nullptr) {
  const Shape& shape = problem.shape;
  PackedAttention attention({.num_heads = shape.num_heads,
                             .num_kv_heads = shape.num_kv_heads,
                             .head_dim = shape.head_dim,
                             .norm_epsilon = kEpsilon,
                             .lengths = shape.lengths,
                             .cosines = problem.cosines.data(),
                             .sines = problem.sines.data()},
                            isa);
  const PackedAttention::Norms norms = {
      .query = shape.has_norms ? problem.query_norm.data() : nullptr,
      .key = shape.has_norms ? problem.key_norm.data() : nullptr};
  Results results;
  results.d_query_norm.resize(problem.query_norm.size());
  results.d_key_norm.resize(problem.key_norm.size());
  const PackedAttention::NormGradients d_norms = {.query = results.d_query_norm.data(),
                                                  .key = results.d_key_norm.data()};
  std::vector<float> log_sums(static_cast<size_t>(shape.num_tokens() * shape.num_heads));
  if (is_bf16) {
    const std::vector<uint16_t> qkv = Rounded(problem.qkv);
    std::vector<uint16_t> out(problem.d_out.size());
    std::vector<uint16_t> d_qkv(qkv.size());
    attention.Forward(qkv.data(), norms, out.data(), log_sums.data());
    attention.Backward(qkv.data(), norms, out.data(), log_sums.data(),
                       Rounded(problem.d_out).data(), d_qkv.data(), d_norms);
    results.out = Floats(out);
    results.d_qkv = Floats(d_qkv);
  } else {
    results.out.resize(problem.d_out.size());
    results.d_qkv.resize(problem.qkv.size());
    attention.Forward(problem.qkv.data(), norms, results.out.data(), log_sums.data());
    attention.Backward(problem.qkv.data(), norms, results.out.data(), log_sums.data(),
                       problem.d_out.data(), results.d_qkv.data(), d_norms);
  }
  if (num_bytes != nullptr) *num_bytes = attention.num_bytes();
  return results;
}

const std::vector<Shape> kShapes = {
    {.num_heads = 1, .num_kv_heads = 1, .head_dim = 2, .lengths = {1, 3}},
    {.num_heads = 6, .num_kv_heads = 2, .head_dim = 8, .lengths = {5, 34, 1}},
    {.num_heads = 2, .num_kv_heads = 2, .head_dim = 34, .has_norms = false, .lengths = {33, 2}},
    {.num_heads = 4, .num_kv_heads = 1, .head_dim = 64, .lengths = {70}},
};

class PackedAttentionTest : public testing::TestWithParam<Isa> {};

std::string NameOf(const testing::TestParamInfo<Isa>& info) {
  return std::string(IsaName(info.param));
}
INSTANTIATE_TEST_SUITE_P(Levels, PackedAttentionTest, testing::ValuesIn(IsaLevels()), NameOf);

TEST_P(PackedAttentionTest, OutputsAreThoseOfTheDefinition) {
  for (const bool is_bf16 : {false, true}) {
    for (const Shape& shape : kShapes) {
      const Problem problem(shape, is_bf16);
      const std::vector<double> expected =
          NaiveForward(problem, {problem.qkv.begin(), problem.qkv.end()});
      const Results results = Compute(problem, GetParam(), is_bf16);
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(results.out[i], expected[i], is_bf16 ? 0.05 : 1e-5) << i << " " << is_bf16;
      }
    }
  }
}

TEST_P(PackedAttentionTest, GradientsAreThoseOfFiniteDifferences) {
  constexpr double kStep = 1e-4;
  for (const bool is_bf16 : {false, true}) {
    for (const Shape& shape : kShapes) {
      const Problem problem(shape, is_bf16);
      const Results results = Compute(problem, GetParam(), is_bf16);
      std::vector<double> qkv(problem.qkv.begin(), problem.qkv.end());
      for (size_t i = 0; i < qkv.size(); i += 1 + qkv.size() / 23) {
        const double value = qkv[i];
        qkv[i] = value + kStep;
        const double above = NaiveLoss(problem, qkv);
        qkv[i] = value - kStep;
        const double below = NaiveLoss(problem, qkv);
        qkv[i] = value;
        const double slope = (above - below) / (2 * kStep);
        ASSERT_NEAR(results.d_qkv[i], slope, (is_bf16 ? 0.06 : 2e-5) * (1 + std::abs(slope)))
            << i << " of " << qkv.size() << " " << is_bf16;
      }
    }
  }
}

TEST_P(PackedAttentionTest, GradientsOfNormsAreThoseOfFiniteDifferences) {
  constexpr double kStep = 1e-3;
  Problem problem(kShapes[1], false);
  const Results results = Compute(problem, GetParam(), false);
  const std::vector<double> qkv(problem.qkv.begin(), problem.qkv.end());
  for (const bool of_query : {false, true}) {
    std::vector<float>& norm = of_query ? problem.query_norm : problem.key_norm;
    const std::vector<float>& gradient = of_query ? results.d_query_norm : results.d_key_norm;
    for (size_t i = 0; i < norm.size(); ++i) {
      const float value = norm[i];
      norm[i] = value + static_cast<float>(kStep);
      const double above = NaiveLoss(problem, qkv);
      norm[i] = value - static_cast<float>(kStep);
      const double below = NaiveLoss(problem, qkv);
      norm[i] = value;
      const double slope = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient[i], slope, 2e-3 * (1 + std::abs(slope))) << i;
    }
  }
}

// Each sequence's results, to the bit, are those it has alone.
TEST_P(PackedAttentionTest, SequencesDoNotSeeEachOther) {
  constexpr int64_t kBefore = 40;  // tokens of the other sequence
  const auto without = [](std::vector<float> rows, int64_t width) {
    rows.erase(rows.begin(), rows.begin() + kBefore * width);
    return rows;
  };
  for (const bool is_bf16 : {false, true}) {
    const Problem together(
        {.num_heads = 6, .num_kv_heads = 2, .head_dim = 8, .lengths = {kBefore, 7}}, is_bf16);
    Problem alone = together;
    alone.shape.lengths = {7};
    alone.qkv = without(alone.qkv, alone.shape.row());
    alone.d_out = without(alone.d_out, 48);
    alone.cosines = without(alone.cosines, 4);
    alone.sines = without(alone.sines, 4);
    const Results all = Compute(together, GetParam(), is_bf16);
    const Results own = Compute(alone, GetParam(), is_bf16);
    EXPECT_EQ(without(all.out, 48), own.out);
    EXPECT_EQ(without(all.d_qkv, alone.shape.row()), own.d_qkv);
  }
}

TEST_P(PackedAttentionTest, MemoryIsLinearInTheLongestSequence) {
  const auto bytes_of = [](const std::vector<int64_t>& lengths) {
    const Problem problem({.num_heads = 6, .num_kv_heads = 2, .head_dim = 8, .lengths = lengths},
                          true);
    int64_t num_bytes = 0;
    Compute(problem, GetParam(), true, &num_bytes);
    return static_cast<double>(num_bytes);
  };
  EXPECT_NEAR((bytes_of({512}) - bytes_of({256})) / (bytes_of({256}) - bytes_of({128})), 2, 0.05);
  EXPECT_EQ(bytes_of({128, 128, 3}), bytes_of({128}));
}

}  // namespace
}  // namespace pace
