// What the engine recorded, computed again by the network that trains: grouped,
// batched, interrupted by syncs and resumed from a checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/cpu/cpu_decoder.h"
#include "model/decoder.h"
#include "model/tiny_configs.h"
#include "model/torch/training_network.h"
#include "model/weight_set.h"
#include "rollout/engine_core.h"

namespace pace {
namespace {

constexpr double kMaxDifference = 5e-5;
constexpr double kMaxMeanDifference = 1e-5;
constexpr int64_t kNumVersions = 3;
constexpr int64_t kNumGroups = 6;
constexpr int64_t kMaxTokens = 48;

struct Difference {
  double sum = 0;
  double largest = 0;
  int64_t count = 0;

  void Add(double a, double b) {
    sum += std::abs(a - b);
    largest = std::max(largest, std::abs(a - b));
    ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
};

struct Sequence {
  std::vector<TokenId> prompt;
  PartialResponse response;
};

std::unique_ptr<EngineCore> MakeEngine(const ModelConfig& config) {
  DecoderOptions decoder_options;
  decoder_options.num_blocks = 40;  // too few for all at once: some are preempted
  decoder_options.num_threads = 2;
  Result<std::unique_ptr<Decoder>> decoder = CreateCpuDecoder(config, decoder_options);
  PACE_CHECK(decoder.ok(), decoder.status().message());
  RolloutOptions options;
  options.min_scored = 4;
  options.max_pass_tokens = 24;
  return std::make_unique<EngineCore>(std::move(decoder).value(), std::nullopt, options);
}

void Sync(EngineCore& engine, PolicyVersion version, const WeightSet& weights) {
  Result<std::shared_ptr<const DecoderWeights>> prepared = engine.decoder().Prepare(weights);
  ASSERT_TRUE(prepared.ok());
  ASSERT_TRUE(engine.Sync(version, *prepared).ok());
}

std::vector<TokenId> PromptOf(int64_t group, const ModelConfig& config) {
  std::vector<TokenId> prompt;
  for (int64_t i = 0; i < 3 + 7 * group; ++i) {
    prompt.push_back(static_cast<TokenId>((31 * group + 17 * i) % config.vocab_size));
  }
  return prompt;
}

// Runs all groups; versions change in the middle, and once everything in flight
// moves to a fresh engine.
std::vector<Sequence> Generate(const ModelConfig& config, const std::vector<WeightSet>& weights) {
  std::vector<Sequence> done;
  std::unique_ptr<EngineCore> engine = MakeEngine(config);
  Sync(*engine, PolicyVersion(0), weights[0]);
  for (int64_t group = 0; group < kNumGroups; ++group) {
    GroupRequest request;
    request.group = GroupId(group);
    request.prompt = PromptIndex(group);
    request.seed = 9;
    request.prompt_tokens = PromptOf(group, config);
    request.num_responses = 3;
    request.stop.max_tokens = kMaxTokens;
    EXPECT_TRUE(engine->Submit(request).ok());
  }
  int64_t version = 0;
  for (int64_t step = 1; engine->busy(); ++step) {
    if (step % 60 == 0 && version + 1 < kNumVersions) {
      ++version;
      Sync(*engine, PolicyVersion(version), weights[static_cast<size_t>(version)]);
    }
    if (step == 90) {
      std::unique_ptr<EngineCore> fresh = MakeEngine(config);
      Sync(*fresh, PolicyVersion(version), weights[static_cast<size_t>(version)]);
      for (GroupRequest& request : engine->Unfinished()) {
        EXPECT_TRUE(fresh->Submit(std::move(request)).ok());
      }
      engine = std::move(fresh);
    }
    Result<StepReport> report = engine->Step();
    EXPECT_TRUE(report.ok());
    for (FinishedResponse& finished : report->finished) {
      done.push_back({PromptOf(finished.id.group.value(), config), std::move(finished.response)});
    }
  }
  return done;
}

// Log-probs of all response tokens under one network, in one packed batch.
std::vector<std::vector<double>> TrainingLogProbs(const TrainingNetwork& network,
                                                  const std::vector<Sequence>& sequences) {
  const at::NoGradGuard no_grad;
  PackedTokens packed;
  for (const Sequence& sequence : sequences) {
    std::vector<TokenId> tokens = sequence.prompt;
    for (const TokenRecord& token : sequence.response.tokens) tokens.push_back(token.id);
    packed.lengths.push_back(static_cast<int64_t>(tokens.size()));
    packed.tokens.insert(packed.tokens.end(), tokens.begin(), tokens.end());
  }
  const at::Tensor logprobs_TV =
      at::log_softmax(network.Logits(network.Hidden(packed)).to(at::kDouble), -1);
  std::vector<std::vector<double>> all;
  int64_t begin = 0;
  for (const Sequence& sequence : sequences) {
    std::vector<double>& own = all.emplace_back();
    int64_t row = begin + static_cast<int64_t>(sequence.prompt.size()) - 1;
    for (const TokenRecord& token : sequence.response.tokens) {
      own.push_back(logprobs_TV[row++][token.id].item<double>());
    }
    begin = row + 1;
  }
  return all;
}

class TrainingAgreementTest : public testing::TestWithParam<TinyConfig> {};

TEST_P(TrainingAgreementTest, RecordedLogProbsAndPrefixScoresAreTheTrainersOwn) {
  const ModelConfig& config = GetParam().config;
  std::vector<WeightSet> weights;
  for (int64_t version = 0; version < kNumVersions; ++version) {
    weights.push_back(RandomWeights(config, 100 + static_cast<uint64_t>(version), 0.1));
  }
  const std::vector<Sequence> sequences = Generate(config, weights);
  ASSERT_EQ(sequences.size(), static_cast<size_t>(3 * kNumGroups));

  std::vector<std::vector<std::vector<double>>> by_version;
  for (const WeightSet& set : weights) {
    Result<TrainingNetwork> network = TrainingNetwork::Create(config, set, {});
    ASSERT_TRUE(network.ok());
    by_version.push_back(TrainingLogProbs(*network, sequences));
  }
  Difference logprobs;
  Difference scores;
  int64_t num_interrupted = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const PartialResponse& response = sequences[i].response;
    ASSERT_EQ(response.tokens.size(), static_cast<size_t>(kMaxTokens));
    num_interrupted += response.num_interrupts > 0 ? 1 : 0;
    for (size_t t = 0; t < response.tokens.size(); ++t) {
      const auto version = static_cast<size_t>(response.tokens[t].version.step());
      logprobs.Add(response.tokens[t].logprob, by_version[version][i][t]);
    }
    if (!response.prefix_score.has_value()) continue;
    // The score was taken at the last sync: over the tokens of older versions.
    const size_t newest = static_cast<size_t>(response.tokens.back().version.step());
    double sum = 0;
    size_t count = 0;
    for (; static_cast<size_t>(response.tokens[count].version.step()) < newest; ++count) {
      sum += std::abs(by_version[newest][i][count] -
                      static_cast<double>(response.tokens[count].logprob));
    }
    if (count >= 4) scores.Add(*response.prefix_score, sum / static_cast<double>(count));
  }
  EXPECT_GT(num_interrupted, 3);
  EXPECT_GT(scores.count, 3);
  EXPECT_LE(logprobs.mean(), kMaxMeanDifference);
  EXPECT_LE(logprobs.largest, kMaxDifference);
  EXPECT_LE(scores.largest, kMaxDifference);
}

INSTANTIATE_TEST_SUITE_P(Networks, TrainingAgreementTest, testing::ValuesIn(TinyConfigs()),
                         [](const auto& config) {
                           std::string name = config.param.name;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace pace
