// What the CPU decoder samples has the same bits on every processor.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "model/cpu/cpu_decoder.h"
#include "model/decoder.h"
#include "model/model_config_json.h"
#include "model/weight_set.h"
#include "rollout/engine_core.h"

namespace pace {
namespace {

// Ids and bits of log-probabilities of a response, added to a hash (FNV-1a over words).
uint64_t AddBits(uint64_t hash, const PartialResponse& response) {
  for (const TokenRecord& token : response.tokens) {
    hash = (hash ^ static_cast<uint64_t>(token.id)) * 1099511628211U;
    hash = (hash ^ std::bit_cast<uint32_t>(token.logprob)) * 1099511628211U;
  }
  return hash;
}

TEST(DecodeBitsTest, SampledResponsesAreTheSameOnEveryProcessor) {
  const std::string folder = PACE_SOURCE_DIR "/models/tiny";
  const Result<ModelConfig> config = ReadModelConfig(folder);
  ASSERT_TRUE(config.ok()) << config.status().message();
  const Result<WeightSet> weights = WeightSet::Load(*config, folder);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  Result<std::unique_ptr<Decoder>> decoder =
      CreateCpuDecoder(*config, {.dtype = Dtype::kF32, .num_blocks = 64, .num_threads = 1});
  ASSERT_TRUE(decoder.ok()) << decoder.status().message();
  EngineCore engine(std::move(decoder).value(), std::nullopt, RolloutOptions{});
  ASSERT_TRUE(engine.Sync(PolicyVersion(0), *engine.decoder().Prepare(*weights)).ok());
  for (int64_t group = 0; group < 3; ++group) {
    GroupRequest request;
    request.group = GroupId(group);
    request.prompt = PromptIndex(group);
    request.seed = 7;
    request.prompt_tokens = {2, static_cast<TokenId>(3 + group), 5, 4, 8};
    request.num_responses = 2;
    request.stop.max_tokens = 24;
    ASSERT_TRUE(engine.Submit(request).ok());
  }
  uint64_t sum = 0;  // of hashes: the order in which responses end does not matter
  while (engine.busy()) {
    const Result<StepReport> report = engine.Step();
    ASSERT_TRUE(report.ok()) << report.status().message();
    for (const FinishedResponse& finished : report->finished) {
      sum += AddBits(14695981039346656037U, finished.response);
    }
  }
  EXPECT_EQ(sum, 4715792029228501951U);
}

}  // namespace
}  // namespace pace
