// Draws and log-probabilities against those of the CPU.
#include "model/cuda/decode/logits_kernels.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "model/cpu/sampler.h"
#include "model/cuda/test_device.h"
#include "model/sampling.h"

namespace pace::cuda {
namespace {

// What to ask about one row of logits, on both sides.
struct Asked {
  SamplingOptions options;
  SampleKey key;
  TokenId target = -1;
};

TEST_F(CudaKernelsTest, AnswersAreThoseOfTheCpu) {
  for (const int64_t vocab : {53, 5000, 151936}) {
    const int64_t stride = (vocab + 7) / 8 * 8;
    constexpr size_t kLogitRows = 4;
    Floats logits = Random(kLogitRows * static_cast<size_t>(stride), 50, 3);
    // Ties, which are drawn and kept in the order of ids.
    for (size_t i = 0; i < 20; ++i) logits[static_cast<size_t>(stride) + i * 2] = 7.5F;
    std::vector<Asked> asked;
    for (int64_t i = 0; i < 120; ++i) {
      Asked one;
      one.key = {.seed = 5, .prompt = i, .response = 1, .token = 2};
      if (i % 6 == 0) one.options.temperature = 0;
      if (i % 6 == 1) one.options.temperature = 0.7;
      if (i % 6 == 2) one.options.top_k = 1 + i;
      if (i % 6 == 3) one.options.top_p = 0.1 + 0.007 * static_cast<double>(i);
      if (i % 6 == 4) one.options.min_p = 0.05;
      if (i % 6 == 5) {
        one.options = {.temperature = 1.3, .top_k = 30, .top_p = 0.8, .min_p = 0.1};
      }
      if (i % 7 == 0) one.target = static_cast<TokenId>(i * 13 % vocab);
      asked.push_back(one);
    }
    std::vector<LogitsRequest> requests;
    for (size_t i = 0; i < asked.size(); ++i) {
      const SamplingOptions& options = asked[i].options;
      LogitsRequest request;
      request.row = static_cast<int32_t>(i % kLogitRows);
      request.target = asked[i].target;
      request.greedy = options.greedy() ? 1 : 0;
      request.top_k = static_cast<int32_t>(options.top_k);
      request.top_p = options.top_p;
      request.min_p = static_cast<float>(options.min_p);
      request.scale = options.scale();
      request.factor = static_cast<float>(1 / options.scale());
      request.uniform = UniformOf(asked[i].key);
      requests.push_back(request);
    }
    const OnDevice<float> device_logits(logits);
    const OnDevice<LogitsRequest> device_questions(requests);
    const OnDevice<float> pieces(
        static_cast<size_t>(LogitsPieceFloats(std::ssize(requests), vocab)));
    const OnDevice<LogitsResult> results(requests.size());
    ComputeLogitsResults({.logits = device_logits.get(),
                          .stride = stride,
                          .vocab_size = vocab,
                          .requests = device_questions.get(),
                          .num_requests = std::ssize(requests),
                          .any_truncated = true,
                          .pieces = pieces.get(),
                          .results = results.get()},
                         nullptr);
    const std::vector<LogitsResult> ours = results.Read();
    std::vector<float> scratch;
    for (size_t i = 0; i < asked.size(); ++i) {
      const std::span<const float> row(
          logits.data() + (i % kLogitRows) * static_cast<size_t>(stride),
          static_cast<size_t>(vocab));
      const SamplingOptions& options = asked[i].options;
      if (asked[i].target >= 0) {
        EXPECT_NEAR(ours[i].logprob, LogProbOf(row, options.scale(), asked[i].target), 2e-5) << i;
        continue;
      }
      const Sampled expected = Sample(row, options, asked[i].key, scratch);
      EXPECT_EQ(ours[i].token, expected.token) << vocab << ", request " << i;
      EXPECT_NEAR(ours[i].logprob, expected.logprob, 2e-5) << vocab << ", request " << i;
      EXPECT_NEAR(ours[i].sampled_logprob, expected.sampled_logprob, 2e-5)
          << vocab << ", request " << i;
    }
  }
}

TEST_F(CudaKernelsTest, RowsGoOnBehindTheTokensDrawn) {
  constexpr int32_t kStop = 9;
  constexpr size_t kRows = 300;
  std::vector<LogitsResult> drawn;
  std::vector<int32_t> sources;
  std::vector<int32_t> tokens;
  std::vector<int32_t> positions;
  std::vector<int32_t> tables;
  for (size_t i = 0; i < kRows; ++i) {
    drawn.push_back({.token = static_cast<int32_t>(i * 7 % 23)});
    sources.push_back(i % 5 == 0 ? kOwnToken : static_cast<int32_t>((i * 11 + 3) % kRows));
    tokens.push_back(100 + static_cast<int32_t>(i));
    positions.push_back(1000 + static_cast<int32_t>(i));
    tables.push_back(2000 + static_cast<int32_t>(i));
  }
  const OnDevice<LogitsResult> results(drawn);
  const OnDevice<int32_t> device_sources(sources);
  const OnDevice<int32_t> stops(std::vector<int32_t>{55, kStop});
  const OnDevice<int32_t> device_tokens(tokens);
  const OnDevice<int32_t> device_positions(positions);
  const OnDevice<int32_t> device_tables(tables);
  Advance({.sources = device_sources.get(),
           .results = results.get(),
           .stops = stops.get(),
           .num_stops = 2,
           .num_rows = kRows,
           .tokens = device_tokens.get(),
           .positions = device_positions.get(),
           .tables = device_tables.get()},
          nullptr);
  for (size_t i = 0; i < kRows; ++i) {
    if (sources[i] == kOwnToken) continue;
    tokens[i] = drawn[static_cast<size_t>(sources[i])].token;
    if (tokens[i] == kStop) positions[i] = tables[i] = 0;
  }
  EXPECT_EQ(device_tokens.Read(), tokens);
  EXPECT_EQ(device_positions.Read(), positions);
  EXPECT_EQ(device_tables.Read(), tables);
}

}  // namespace
}  // namespace pace::cuda
