// Engines with real decoders on threads of their own.
#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <utility>

#include "model/cpu/cpu_decoder.h"
#include "model/tiny_configs.h"
#include "rollout/engine.h"

namespace pace {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int64_t kGroups = 6;
constexpr int64_t kResponses = 3;

std::unique_ptr<EngineCore> Core(const ModelConfig& config, int64_t num_threads) {
  Result<std::unique_ptr<Decoder>> decoder = CreateCpuDecoder(
      config, {.dtype = Dtype::kF32, .num_blocks = 40, .num_threads = num_threads});
  EXPECT_TRUE(decoder.ok()) << decoder.status().message();
  return std::make_unique<EngineCore>(std::move(decoder).value(), std::nullopt,
                                      RolloutOptions{.min_scored = 4, .max_pass_tokens = 48});
}

GroupRequest Request(int64_t group) {
  GroupRequest request;
  request.group = GroupId(group);
  request.prompt = PromptIndex(group);
  request.prompt_tokens.assign(static_cast<size_t>(5 + 3 * group), static_cast<TokenId>(group));
  request.num_responses = kResponses;
  request.stop.max_tokens = 30;
  return request;
}

using Responses = std::map<MemberId, PartialResponse>;

// All that the engine finishes, with a pause and a sync on the way.
Responses Generate(RolloutEngine& engine, const ModelConfig& config) {
  EXPECT_TRUE(engine.Sync(PolicyVersion(0), RandomWeights(config, 0, 0.3)).ok());
  for (int64_t group = 0; group < kGroups; ++group) engine.Submit(Request(group));
  engine.Pause();
  engine.Resume();
  EXPECT_TRUE(engine.Sync(PolicyVersion(1), RandomWeights(config, 1, 0.3)).ok());
  Responses responses;
  const auto deadline = steady_clock::now() + seconds(120);
  while (responses.size() < kGroups * kResponses && steady_clock::now() < deadline) {
    for (RolloutEvent& event : engine.Wait(deadline)) {
      auto* finished = std::get_if<FinishedResponse>(&event);
      if (finished != nullptr) responses[finished->id] = std::move(finished->response);
    }
  }
  return responses;
}

// The same response from a core without threads, interrupted at the same token.
PartialResponse Alone(const ModelConfig& config, MemberId id, const PartialResponse& response) {
  const auto core = Core(config, 1);
  GroupRequest request = Request(id.group.value());
  request.members = {id.member};
  size_t num_old = 0;
  while (num_old < response.tokens.size() && response.tokens[num_old].version.step() == 0) {
    ++num_old;
  }
  const auto prepare = [&](uint64_t seed) {
    return *core->decoder().Prepare(RandomWeights(config, seed, 0.3));
  };
  EXPECT_TRUE(core->Sync(PolicyVersion(0), prepare(0)).ok());
  EXPECT_TRUE(core->Submit(request).ok());
  PartialResponse same;
  for (size_t num_tokens = 0; core->busy();) {
    if (num_tokens == num_old && core->version() == PolicyVersion(0)) {
      EXPECT_TRUE(core->Sync(PolicyVersion(1), prepare(1)).ok());
    }
    const Result<StepReport> report = core->Step();
    EXPECT_TRUE(report.ok());
    num_tokens += report->sampled.size();
    if (!report->finished.empty()) same = report->finished[0].response;
  }
  return same;
}

TEST(ModelEngineTest, TwoEnginesSideBySideGiveWhatEachResponseGivesAlone) {
  const ModelConfig config = TinyModel(Architecture::kQwen3);
  RolloutEngine first(Core(config, 1));
  RolloutEngine second(Core(config, 2));
  Responses others;
  std::thread caller([&] { others = Generate(second, config); });
  const Responses responses = Generate(first, config);
  caller.join();
  for (const Responses* each : {&responses, &std::as_const(others)}) {
    ASSERT_EQ(each->size(), static_cast<size_t>(kGroups * kResponses));
    for (const auto& [id, response] : *each) EXPECT_EQ(response, Alone(config, id, response));
  }
}

}  // namespace
}  // namespace pace
