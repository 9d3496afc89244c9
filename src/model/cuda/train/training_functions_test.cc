#include "model/cuda/train/training_functions.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "model/cuda/decode/cuda_decoder.h"
#include "model/tiny_configs.h"
#include "model/torch/row_functions.h"
#include "model/torch/training_network.h"

namespace pace {
namespace {

class CudaTrainingTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<CudaDevice> device = FindCudaDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }
};

at::Tensor Wave(at::IntArrayRef sizes, double phase, at::ScalarType dtype = at::kFloat) {
  return (at::arange(c10::multiply_integers(sizes), at::kDouble) * 0.7 + phase)
      .sin()
      .view(sizes)
      .to(at::kCUDA, dtype);
}

// The largest difference, over the largest number.
double Difference(const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor a = left.to(at::kDouble);
  const at::Tensor b = right.to(at::kDouble);
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

using Inputs = std::vector<at::Tensor>;
// The output, then the gradients of the inputs.
std::vector<at::Tensor> Differentiate(const std::function<at::Tensor(const Inputs&)>& body,
                                      Inputs inputs) {
  for (at::Tensor& input : inputs) input = input.detach().clone().set_requires_grad(true);
  const at::Tensor y = body(inputs);
  // The same numbers for every dtype.
  const at::Tensor g = Wave(y.sizes(), 2.5, at::kBFloat16).to(y.scalar_type());
  torch::autograd::backward({y}, {g});
  std::vector<at::Tensor> out = {y.detach()};
  for (const at::Tensor& input : inputs) out.push_back(input.grad());
  return out;
}

void ExpectNear(const std::vector<at::Tensor>& ours, const std::vector<at::Tensor>& theirs,
                double tolerance, const std::string& what) {
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_LT(Difference(ours[i], theirs[i]), tolerance) << what << ", tensor " << i;
  }
}

// Rounding alone: the same inputs, in double.
Inputs Exact(const Inputs& inputs) {
  Inputs exact;
  for (const at::Tensor& input : inputs) exact.push_back(input.to(at::kDouble));
  return exact;
}

TEST_F(CudaTrainingTest, TheNormAndItsGradientsAreThoseOfTheComposition) {
  for (const int64_t width : {8, 24, 128, 576, 2560, 8192}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      for (const int64_t num_rows : {1, 37, 2500}) {
        const Inputs inputs = {Wave({num_rows, width}, 0.2, dtype), Wave({width}, 1.4) + 1.5};
        ASSERT_TRUE(HasCudaNorm(inputs[0]));
        const auto ours =
            Differentiate([](const Inputs& in) { return RmsNormRows(in[0], in[1], 1e-6); }, inputs);
        const auto exact = Differentiate(
            [](const Inputs& in) { return ComposedRmsNorm(in[0], in[1], 1e-6); }, Exact(inputs));
        ExpectNear(ours, exact, dtype == at::kFloat ? 1e-5 : 2e-2,
                   Concat(num_rows, " x ", width, " ", c10::toString(dtype)));
      }
    }
  }
}

// As in a layer: x also goes on beside its norm.
TEST_F(CudaTrainingTest, TheGradientOfAResidualIsAddedToThatOfItsNorm) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Inputs inputs = {Wave({37, 2560}, 0.2, dtype), Wave({2560}, 1.4) + 1.5};
    ASSERT_TRUE(HasCudaNorm(inputs[0]));
    const auto both = [](const Inputs& in) {
      const NormedRows normed = RmsNormBeside(in[0], in[1], 1e-6);
      return normed.norm + 3 * normed.x;
    };
    const auto exact = Differentiate(
        [](const Inputs& in) { return ComposedRmsNorm(in[0], in[1], 1e-6) + 3 * in[0]; },
        Exact(inputs));
    ExpectNear(Differentiate(both, inputs), exact, dtype == at::kFloat ? 1e-5 : 2e-2, "both");
    ExpectNear(
        Differentiate([](const Inputs& in) { return RmsNormBeside(in[0], in[1], 1e-6).norm; },
                      inputs),
        Differentiate([](const Inputs& in) { return RmsNormRows(in[0], in[1], 1e-6); }, inputs),
        1e-9, "the norm alone");
  }
}

TEST_F(CudaTrainingTest, TheGateAndItsGradientAreThoseOfTheComposition) {
  for (const int64_t width : {8, 40, 1536, 9728}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const Inputs inputs = {3 * Wave({33, 2 * width}, 0.2, dtype)};
      ASSERT_TRUE(HasCudaGate(inputs[0]));
      const auto ours = Differentiate([](const Inputs& in) { return GatedRows(in[0]); }, inputs);
      const auto exact =
          Differentiate([](const Inputs& in) { return ComposedGate(in[0]); }, Exact(inputs));
      ExpectNear(ours, exact, dtype == at::kFloat ? 1e-5 : 1e-2, Concat("width ", width));
    }
  }
}

TEST_F(CudaTrainingTest, ProductsAreThoseOfLinearLayers) {
  for (const bool has_bias : {false, true}) {
    for (const bool has_residual : {false, true}) {
      // x, the residual, two weights, two biases
      Inputs inputs = {Wave({50, 48}, 0.1, at::kBFloat16), Wave({50, 56}, 0.5, at::kBFloat16),
                       Wave({40, 48}, 0.9).to(at::kBFloat16).to(at::kFloat),
                       Wave({16, 48}, 1.9).to(at::kBFloat16).to(at::kFloat)};
      if (has_bias) {
        inputs.push_back(Wave({40}, 0.3).to(at::kBFloat16).to(at::kFloat));
        inputs.push_back(Wave({16}, 0.7).to(at::kBFloat16).to(at::kFloat));
      }
      const auto ours = Differentiate(
          [&](const Inputs& in) {
            CudaProduct product{.weights = {in[2], in[3]}};
            if (has_bias) product.biases = {in[4], in[5]};
            if (has_residual) product.residual = in[1];
            const at::Tensor y = CudaLinear(in[0], product);
            return has_residual ? y : y + in[1];
          },
          inputs);
      EXPECT_EQ(ours[3].scalar_type(), at::kFloat);
      const auto exact = Differentiate(
          [&](const Inputs& in) {
            const at::Tensor weight = at::cat({in[2], in[3]});
            const at::Tensor y = has_bias ? at::linear(in[0], weight, at::cat({in[4], in[5]}))
                                          : at::linear(in[0], weight);
            return y + in[1];
          },
          Exact(inputs));
      ExpectNear(ours, exact, 3e-2, Concat("bias ", has_bias, " residual ", has_residual));
      // Gradients of weights are sums in float32 of the bf16 factors.
      const at::Tensor g = Wave({50, 56}, 2.5, at::kBFloat16).to(at::kDouble);
      const at::Tensor d_weight = at::mm(g.t(), inputs[0].to(at::kDouble));
      EXPECT_LT(Difference(at::cat({ours[3], ours[4]}), d_weight), 1e-5);
    }
  }
}

// Attention by the definition, sequence by sequence.
at::Tensor PlainAttention(const ModelConfig& config, const Inputs& in,
                          const std::vector<int64_t>& lengths, const at::Tensor& cos,
                          const at::Tensor& sin) {
  const int64_t dim = config.head_dim;
  const at::Tensor heads = in[0].view({in[0].size(0), -1, dim});
  const auto turned = [&](const at::Tensor& x, const at::Tensor* norm) {
    const at::Tensor normed = norm == nullptr ? x : ComposedRmsNorm(x, *norm, config.norm_epsilon);
    const std::vector<at::Tensor> halves = normed.chunk(2, -1);
    return at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
  };
  const int64_t q = config.num_heads;
  const int64_t kv = config.num_kv_heads;
  const at::Tensor queries = turned(heads.narrow(1, 0, q), in.size() > 1 ? &in[1] : nullptr);
  const at::Tensor keys = turned(heads.narrow(1, q, kv), in.size() > 1 ? &in[2] : nullptr);
  const at::Tensor values = heads.narrow(1, q + kv, kv);
  std::vector<at::Tensor> out;
  int64_t begin = 0;
  for (const int64_t n : lengths) {
    const auto own = [&](const at::Tensor& x) {
      return x.narrow(0, begin, n).transpose(0, 1).repeat_interleave(q / x.size(1), 0);
    };
    const at::Tensor scores =
        at::matmul(own(queries), own(keys).transpose(1, 2)) / std::sqrt(static_cast<double>(dim));
    const at::Tensor later = at::ones({n, n}, scores.options().dtype(at::kBool)).triu(1);
    const at::Tensor shares = at::softmax(scores.masked_fill(later, -1e30), -1);
    out.push_back(at::matmul(shares, own(values)).transpose(0, 1).reshape({n, -1}));
    begin += n;
  }
  return at::cat(out);
}

TEST_F(CudaTrainingTest, PackedAttentionIsThatOfEachSequence) {
  const std::vector<int64_t> lengths = {7, 1, 130, 64};
  const int64_t num_rows = 202;
  for (const int64_t head_dim : {16, 64, 128}) {
    for (const bool has_norms : {false, true}) {
      ModelConfig config = TinyModel(Architecture::kQwen3);
      config.head_dim = head_dim;
      ASSERT_TRUE(HasCudaAttention(config, at::kBFloat16, at::kCUDA));
      const int64_t width = (config.num_heads + 2 * config.num_kv_heads) * head_dim;
      Inputs inputs = {2 * Wave({num_rows, width}, 0.4, at::kBFloat16)};
      if (has_norms) {
        inputs.push_back(Wave({head_dim}, 1.0) + 1.2);
        inputs.push_back(Wave({head_dim}, 2.0) + 1.2);
      }
      const at::Tensor angles = 40 * Wave({num_rows, 1, head_dim / 2}, 0.8);
      const at::Tensor cos = at::cos(angles);
      const at::Tensor sin = at::sin(angles);
      const auto sequences = c10::make_intrusive<CudaSequences>(config, lengths, cos, sin);
      const auto ours = Differentiate(
          [&](const Inputs& in) {
            return in.size() == 1 ? CudaAttend(in[0], {}, {}, sequences)
                                  : CudaAttend(in[0], in[1], in[2], sequences);
          },
          inputs);
      const auto exact = Differentiate(
          [&](const Inputs& in) {
            return PlainAttention(config, in, lengths, cos.to(at::kDouble), sin.to(at::kDouble));
          },
          Exact(inputs));
      ExpectNear(ours, exact, 2e-2, Concat("head_dim ", head_dim, " norms ", has_norms));
    }
  }
}

TrainingNetwork Built(const ModelConfig& config, const TrainingNetwork::Options& options) {
  Result<TrainingNetwork> network =
      TrainingNetwork::Create(config, RandomWeights(config, 5, 0.1), options);
  EXPECT_TRUE(network.ok()) << network.status().message();
  return std::move(*network);
}

std::map<std::string, at::Tensor> Gradients(const TrainingNetwork& network,
                                            const PackedTokens& batch, at::Tensor* logits,
                                            std::vector<RoutingRecord>* routing) {
  *logits = network.Logits(network.Hidden(batch, routing)).to(at::kCPU, at::kDouble);
  const at::Tensor weights = at::arange(logits->numel(), at::kDouble).sin().view_as(*logits);
  torch::autograd::backward({(at::log_softmax(*logits, -1) * weights).sum()});
  std::map<std::string, at::Tensor> out;
  for (const auto& [name, parameter] : network.parameters()) {
    if (!parameter.grad().defined()) continue;
    out.emplace(name, parameter.grad().to(at::kCPU, at::kDouble));
  }
  *logits = logits->detach();
  return out;
}

// The rows that the same experts computed, and all rows before them in their sequences.
at::Tensor RowsOfTheSameExperts(const PackedTokens& batch, const std::vector<RoutingRecord>& ours,
                                const std::vector<RoutingRecord>& theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  at::Tensor same = at::ones({static_cast<int64_t>(batch.tokens.size())}, at::kBool);
  const auto sorted = [](const RoutingRecord& record) {
    return std::get<0>(at::sort(record.experts_TK.to(at::kCPU), -1));
  };
  for (size_t i = 0; i < ours.size(); ++i) {
    same = at::logical_and(same, at::eq(sorted(ours[i]), sorted(theirs[i])).all(-1));
  }
  std::vector<int64_t> rows;
  int64_t row = 0;
  for (const int64_t length : batch.lengths) {
    bool is_same = true;
    for (const int64_t end = row + length; row < end; ++row) {
      is_same = is_same && same[row].item<bool>();
      if (is_same) rows.push_back(row);
    }
  }
  return at::tensor(rows, at::kLong);
}

TEST_F(CudaTrainingTest, NetworksAndTheirGradientsAreThoseOfTheCpu) {
  const PackedTokens batch = {.tokens = {1, 7, 3, 50, 7, 22, 9, 9, 9, 30, 0, 52},
                              .lengths = {7, 1, 4}};
  for (const TinyConfig& tiny : TinyConfigs()) {
    ModelConfig config = tiny.config;
    for (const bool is_wide : {false, true}) {
      // Wide enough for all kernels, or for none.
      if (is_wide) {
        config.head_dim = 16;
        config.hidden_size = 64;
      }
      at::Tensor expected;
      std::vector<RoutingRecord> exact_routing;
      const auto exact =
          Gradients(Built(config, {.dtype = at::kDouble}), batch, &expected, &exact_routing);
      for (const bool in_bf16 : {false, true}) {
        for (const bool recompute : {false, true}) {
          const std::string what = Concat(tiny.name, " wide ", is_wide, " bf16 ", in_bf16);
          at::Tensor logits;
          std::vector<RoutingRecord> routing;
          const auto ours = Gradients(Built(config, {.device = at::kCUDA,
                                                     .compute_in_bf16 = in_bf16,
                                                     .recompute_layers = recompute}),
                                      batch, &logits, &routing);
          // A router may choose another expert for a rounded row.
          const at::Tensor rows = RowsOfTheSameExperts(batch, routing, exact_routing);
          EXPECT_GE(rows.numel(), in_bf16 ? logits.size(0) / 2 : logits.size(0)) << what;
          EXPECT_LT(Difference(logits.index_select(0, rows), expected.index_select(0, rows)),
                    in_bf16 ? 3e-2 : 1e-5)
              << what;
          if (in_bf16 && config.moe) continue;
          ASSERT_EQ(ours.size(), exact.size()) << what;
          double difference = 0;
          double size = 0;
          for (const auto& [name, gradient] : ours) {
            difference += (gradient - exact.at(name)).pow(2).sum().item<double>();
            size += exact.at(name).pow(2).sum().item<double>();
          }
          EXPECT_LT(std::sqrt(difference / size), in_bf16 ? 3e-2 : 1e-5) << what;
        }
      }
    }
  }
}

// The gradients of all parameters when recomputed layers may keep `kept_bytes`.
std::map<std::string, at::Tensor> GradientsKeeping(const TrainingNetwork& network,
                                                   const PackedTokens& batch, int64_t kept_bytes) {
  for (const auto& [name, parameter] : network.parameters()) {
    at::Tensor(parameter).mutable_grad() = at::Tensor();
  }
  TorchLoader loader(network.parameters());
  const auto weights = LoadNetwork<TorchOps>(network.config(), loader);
  const at::Tensor frequencies = at::tensor(RopeFrequencies(network.config())).to(at::kCUDA);
  const auto ops = std::make_shared<TorchOps>(
      network.config(), batch, frequencies,
      TorchOps::Options{.dtype = at::kBFloat16, .recompute_layers = true, .kept_bytes = kept_bytes},
      nullptr);
  const at::Tensor hidden = RunNetwork(weights, *ops).parts.front();
  torch::autograd::backward({hidden}, {Wave(hidden.sizes(), 0.3, at::kBFloat16)});
  std::map<std::string, at::Tensor> out;
  for (const auto& [name, parameter] : network.parameters()) {
    if (parameter.grad().defined()) out.emplace(name, parameter.grad().clone());
  }
  return out;
}

TEST_F(CudaTrainingTest, WhatIsKeptDoesNotChangeGradients) {
  const PackedTokens batch = {.tokens = {1, 7, 3, 50, 7, 22, 9, 9, 9, 30, 0, 52},
                              .lengths = {7, 1, 4}};
  for (const Architecture architecture : {Architecture::kQwen3, Architecture::kQwen3Moe}) {
    ModelConfig config = TinyModel(architecture);
    config.head_dim = 16;
    config.hidden_size = 64;
    config.num_layers = 3;
    const TrainingNetwork network =
        Built(config, {.device = at::kCUDA, .compute_in_bf16 = true, .recompute_layers = true});
    const auto expected = GradientsKeeping(network, batch, 0);
    for (const int64_t kept : {3000, 8000, 20000, 1 << 30}) {
      const auto ours = GradientsKeeping(network, batch, kept);
      ASSERT_EQ(ours.size(), expected.size());
      for (const auto& [name, gradient] : ours) {
        EXPECT_LT(Difference(gradient, expected.at(name)), 1e-6) << name << " keeping " << kept;
      }
    }
  }
}

TEST_F(CudaTrainingTest, AnUpdateIsThatOfTheDefinition) {
  for (const int64_t count : {1, 7, 4096, 300001}) {
    // Whole, and from an odd address.
    for (const int64_t begin : {0, 1}) {
      const auto part = [&](double phase) {
        return Wave({count + begin}, phase).narrow(0, begin, count);
      };
      at::Tensor parameter = part(0.1);
      const at::Tensor gradient = part(0.5);
      const at::Tensor first = part(0.9) * 0.1;
      const at::Tensor second = part(1.3).square() * 0.1;
      const auto wide = [](const at::Tensor& x) { return x.to(at::kDouble); };
      const at::Tensor g = wide(gradient) * 0.25;
      const at::Tensor m = 0.9 * wide(first) + 0.1 * g;
      const at::Tensor v = 0.99 * wide(second) + 0.01 * g * g;
      const at::Tensor step =
          m / (1 - std::pow(0.9, 3)) / ((v / (1 - std::pow(0.99, 3))).sqrt() + 1e-8);
      const at::Tensor expected = wide(parameter) * (1 - 0.01 * 0.1) - 0.01 * step;
      CudaAdamWStep({.learning_rate = 0.01,
                     .beta1 = 0.9,
                     .beta2 = 0.99,
                     .epsilon = 1e-8,
                     .weight_decay = 0.1,
                     .num_updates = 3,
                     .gradient_factor = 0.25},
                    parameter, gradient, first, second);
      ExpectNear({parameter, first, second}, {expected, m, v}, 1e-6, Concat(count, " + ", begin));
      const double squares = wide(gradient).square().sum().item<double>();
      EXPECT_NEAR(CudaSumOfSquares({gradient, gradient}), 2 * squares, 1e-12 * squares);
    }
  }
}

// Plans are rounded up: many lengths share one.
TEST_F(CudaTrainingTest, LongAndManySequencesAttendWithinThemselves) {
  std::vector<int64_t> lengths = {700, 3, 1};
  for (int64_t i = 0; i < 30; ++i) lengths.push_back(1 + 37 * i % 91);
  const int64_t num_rows = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  ModelConfig config = TinyModel(Architecture::kQwen3);
  config.head_dim = 128;
  const int64_t width = (config.num_heads + 2 * config.num_kv_heads) * config.head_dim;
  const at::Tensor angles = 40 * Wave({num_rows, 1, config.head_dim / 2}, 0.8);
  const at::Tensor cos = at::cos(angles);
  const at::Tensor sin = at::sin(angles);
  const auto sequences = c10::make_intrusive<CudaSequences>(config, lengths, cos, sin);
  const Inputs inputs = {2 * Wave({num_rows, width}, 0.4, at::kBFloat16)};
  const auto ours =
      Differentiate([&](const Inputs& in) { return CudaAttend(in[0], {}, {}, sequences); }, inputs);
  const auto exact = Differentiate(
      [&](const Inputs& in) {
        return PlainAttention(config, in, lengths, cos.to(at::kDouble), sin.to(at::kDouble));
      },
      Exact(inputs));
  ExpectNear(ours, exact, 2e-2, "33 sequences");
}

}  // namespace
}  // namespace pace
