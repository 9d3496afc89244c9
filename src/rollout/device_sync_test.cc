// Engines that take the weights of a network on the same device, in bf16: on the CPU,
// and on a GPU where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/cuda/decode/cuda_decoder.h"
#include "model/devices.h"
#include "model/tiny_configs.h"
#include "model/torch/training_network.h"
#include "rollout/engine_core.h"

namespace pace {
namespace {

constexpr int64_t kResponses = 5;
constexpr int64_t kTokens = 60;
constexpr size_t kBefore = 21;  // tokens of each when the weights change

class DeviceSyncTest : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceKind::kCpu) return;
    const Result<CudaDevice> device = FindCudaDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }

  static bool on_gpu() { return GetParam() == DeviceKind::kCuda; }

  static TrainingNetwork Network(const ModelConfig& config, uint64_t seed) {
    Result<TrainingNetwork> network = TrainingNetwork::CreateRandom(
        config, seed, 0.15, {.device = on_gpu() ? at::kCUDA : at::kCPU, .compute_in_bf16 = true});
    EXPECT_TRUE(network.ok()) << network.status().message();
    return std::move(*network);
  }

  static std::unique_ptr<EngineCore> Core(const ModelConfig& config,
                                          ScoreMoment moment = ScoreMoment::kEnd) {
    Result<std::unique_ptr<Decoder>> decoder = CreateDecoder(
        GetParam(), config,
        {.dtype = Dtype::kBF16, .num_blocks = 64, .num_threads = 1, .cache_states = true});
    EXPECT_TRUE(decoder.ok()) << decoder.status().message();
    return std::make_unique<EngineCore>(
        std::move(*decoder), std::nullopt,
        RolloutOptions{.min_scored = 4, .score_moment = moment, .max_pass_tokens = 64});
  }

  static void SyncTo(EngineCore& core, int64_t version, const TrainingNetwork& network) {
    const auto prepared =
        core.decoder().Prepare(on_gpu() ? network.DeviceWeights(Dtype::kBF16) : network.Weights());
    ASSERT_TRUE(prepared.ok()) << prepared.status().message();
    ASSERT_TRUE(core.Sync(PolicyVersion(version), *prepared).ok());
  }
};

ModelConfig Wide() {
  ModelConfig config = TinyModel(Architecture::kQwen3);
  config.hidden_size = 128;
  config.intermediate_size = 256;
  config.head_dim = 64;
  config.max_positions = 512;
  return config;
}

GroupRequest Request() {
  GroupRequest request;
  request.group = GroupId(3);
  request.prompt = PromptIndex(8);
  request.prompt_tokens = {1, 7, 9, 20};
  request.num_responses = kResponses;
  request.stop.max_tokens = kTokens;
  return request;
}

std::vector<PartialResponse> ResponsesOf(const EngineCore& core) {
  std::vector<PartialResponse> all;
  for (int64_t member = 0; member < kResponses; ++member) {
    const PartialResponse* response = core.Peek({GroupId(3), member});
    EXPECT_NE(response, nullptr);
    if (response != nullptr) all.push_back(*response);
  }
  return all;
}

// Steps until every response has kBefore tokens.
void Begin(EngineCore& core) {
  const auto lacks = [](const PartialResponse& response) {
    return response.tokens.size() < kBefore;
  };
  do {
    ASSERT_TRUE(core.Step().ok());
  } while (std::ranges::any_of(ResponsesOf(core), lacks));
}

std::map<int64_t, PartialResponse> Finish(EngineCore& core) {
  std::map<int64_t, PartialResponse> finished;
  while (core.busy()) {
    Result<StepReport> report = core.Step();
    EXPECT_TRUE(report.ok()) << report.status().message();
    if (!report.ok()) break;
    for (FinishedResponse& one : report->finished) {
      finished.emplace(one.id.member, std::move(one.response));
    }
  }
  return finished;
}

void ExpectWhole(const std::map<int64_t, PartialResponse>& finished,
                 const std::vector<PartialResponse>& before) {
  ASSERT_EQ(finished.size(), before.size());
  for (const auto& [member, response] : finished) {
    const PartialResponse& old = before[static_cast<size_t>(member)];
    ASSERT_EQ(response.tokens.size(), static_cast<size_t>(kTokens));
    for (size_t i = 0; i < response.tokens.size(); ++i) {
      const TokenRecord& token = response.tokens[i];
      const bool is_old = i < old.tokens.size();
      EXPECT_EQ(token.version.step(), is_old ? 0 : 1);
      EXPECT_TRUE(!is_old || token == old.tokens[i]) << member << ", token " << i;
      EXPECT_TRUE(std::isfinite(token.logprob) && token.logprob <= 0);
    }
    EXPECT_EQ(response.num_interrupts, 1);
    ASSERT_TRUE(response.prefix_score.has_value());
    EXPECT_GT(*response.prefix_score, 0);
  }
}

TEST_P(DeviceSyncTest, AnInterruptedResponseKeepsEveryToken) {
  const ModelConfig config = Wide();
  const auto core = Core(config);
  SyncTo(*core, 0, Network(config, 1));
  ASSERT_TRUE(core->Submit(Request()).ok());
  Begin(*core);
  const std::vector<PartialResponse> before = ResponsesOf(*core);
  SyncTo(*core, 1, Network(config, 2));
  ExpectWhole(Finish(*core), before);
}

TEST_P(DeviceSyncTest, AResponseThatMovesToAnotherEngineKeepsEveryToken) {
  const ModelConfig config = Wide();
  const auto first = Core(config);
  SyncTo(*first, 0, Network(config, 1));
  ASSERT_TRUE(first->Submit(Request()).ok());
  Begin(*first);
  const std::vector<PartialResponse> before = ResponsesOf(*first);
  const auto second = Core(config);
  SyncTo(*second, 0, Network(config, 1));
  for (GroupRequest& request : first->Unfinished()) {
    ASSERT_TRUE(second->Submit(std::move(request)).ok());
  }
  SyncTo(*second, 1, Network(config, 2));
  ExpectWhole(Finish(*second), before);
}

TEST_P(DeviceSyncTest, AScoreIsTheSameAtEitherMoment) {
  const ModelConfig config = Wide();
  std::map<ScoreMoment, std::map<int64_t, PartialResponse>> finished;
  for (const ScoreMoment moment : {ScoreMoment::kReprefill, ScoreMoment::kEnd}) {
    const auto core = Core(config, moment);
    SyncTo(*core, 0, Network(config, 1));
    ASSERT_TRUE(core->Submit(Request()).ok());
    Begin(*core);
    SyncTo(*core, 1, Network(config, 2));
    for (int i = 0; i < 9; ++i) ASSERT_TRUE(core->Step().ok());
    SyncTo(*core, 2, Network(config, 3));
    finished[moment] = Finish(*core);
  }
  for (const auto& [member, response] : finished[ScoreMoment::kReprefill]) {
    const PartialResponse& other = finished[ScoreMoment::kEnd].at(member);
    ASSERT_TRUE(response.prefix_score.has_value() && other.prefix_score.has_value());
    EXPECT_EQ(other.num_interrupts, 2);
    // On a GPU, bits may depend on what else is in a pass.
    EXPECT_NEAR(*other.prefix_score, *response.prefix_score, on_gpu() ? 0.05 : 0);
  }
}

// What a trainer's network says of the tokens is what the engine recorded.
TEST_P(DeviceSyncTest, RecordedLogProbsAreThoseOfTheNetwork) {
  const ModelConfig config = Wide();
  const TrainingNetwork network = Network(config, 5);
  const auto core = Core(config);
  SyncTo(*core, 0, network);
  const GroupRequest request = Request();
  ASSERT_TRUE(core->Submit(request).ok());
  for (const auto& [member, response] : Finish(*core)) {
    PackedTokens batch{.tokens = request.prompt_tokens, .lengths = {}};
    for (const TokenRecord& token : response.tokens) batch.tokens.push_back(token.id);
    batch.lengths = {std::ssize(batch.tokens)};
    const at::NoGradGuard no_grad;
    const at::Tensor logprobs =
        at::log_softmax(network.Logits(network.Hidden(batch)).to(at::kCPU, at::kDouble), -1);
    double sum = 0;
    for (size_t i = 0; i < response.tokens.size(); ++i) {
      const auto row = static_cast<int64_t>(request.prompt_tokens.size() + i) - 1;
      const double expected = logprobs[row][response.tokens[i].id].item<double>();
      sum += std::abs(expected - response.tokens[i].logprob);
    }
    EXPECT_LT(sum / kTokens, 0.05) << member;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceSyncTest,
                         testing::Values(DeviceKind::kCpu, DeviceKind::kCuda),
                         [](const auto& device) { return std::string(DeviceName(device.param)); });

}  // namespace
}  // namespace pace
