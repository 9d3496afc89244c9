// Random lives of an engine over real, tiny networks on the CPU: every response
// equals, to the bit, the decode of its sequence alone, and its log-probabilities
// agree with the slow forward pass in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <span>
#include <string>

#include "model/cpu/cpu_decoder.h"
#include "model/reference_forward.h"
#include "model/tiny_configs.h"
#include "rollout/block_pool.h"
#include "rollout/schedule_driver.h"

namespace pace {
namespace {

constexpr int64_t kSchedules = 100;  // of each of six kinds of networks
constexpr int64_t kLongSchedules = 1700;
constexpr double kWeightScale = 0.3;     // of random weights: far from uniform rows
constexpr double kMaxDifference = 5e-5;  // of a log-probability, float32
constexpr double kMeanDifference = 1e-5;
constexpr double kMeanDifferenceBf16 = 0.05;

// PACE_LONG_TESTS=1 runs 10,200 schedules in all; PACE_SCHEDULES overrides how many
// a test runs.
int64_t NumSchedules() {
  const char* const named = std::getenv("PACE_SCHEDULES");
  if (named != nullptr) return std::atoll(named);
  return std::getenv("PACE_LONG_TESTS") == nullptr ? kSchedules : kLongSchedules;
}

// Differences of log-probabilities from the slow forward pass.
struct Agreement {
  void Add(double difference) {
    max = std::max(max, std::abs(difference));
    sum += std::abs(difference);
    ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
  double max = 0;
  double sum = 0;
  int64_t count = 0;
};

class ModelWorld final : public ScheduleWorld {
 public:
  ModelWorld(const ModelConfig& config, Dtype dtype)
      : config_(config),
        dtype_(dtype),
        alone_(MakeCpuDecoder(config.max_positions, /*num_threads=*/1)) {}

  const ModelConfig& config() const override { return config_; }
  std::unique_ptr<Decoder> MakeDecoder(int64_t num_blocks, SyncMode) override {
    return MakeCpuDecoder(num_blocks * kBlockTokens, num_decoders_++ % 2 + 1);
  }
  std::shared_ptr<const DecoderWeights> Weights(PolicyVersion version) override {
    return Of(version).prepared;
  }

  std::vector<Sampled> Resample(const GroupRequest& request, int64_t member,
                                const std::vector<TokenRecord>& tokens, int64_t first, int64_t end,
                                PolicyVersion version) override {
    const std::vector<TokenId> sequence = Sequence(request, tokens);
    const auto num_prompt = static_cast<int64_t>(request.prompt_tokens.size());
    alone_->Install(Of(version).prepared);
    std::vector<Sampled> samples;
    // All rows in one pass, or the new tokens one after the other.
    const int64_t step = num_resampled_++ % 2 == 0 ? end - first : 1;
    for (int64_t t = first, start = 0; t < end; t += step) {
      Pass pass = PassOf(sequence, start, num_prompt - 1 + t + step);
      for (int64_t i = t; i < t + step; ++i) {
        pass.samples.push_back({.row = num_prompt - 1 + i - start,
                                .options = request.sampling,
                                .key = {request.seed, request.prompt.value(), member, i}});
      }
      const Result<PassResult> result = alone_->Run(pass);
      EXPECT_TRUE(result.ok()) << result.status().message();
      samples.insert(samples.end(), result->samples.begin(), result->samples.end());
      start = num_prompt - 1 + t + step;
    }
    if (num_resampled_ % 4 == 0) Compare(request, tokens, sequence, first, end, version);
    return samples;
  }

  std::vector<float> Rescore(const GroupRequest& request, const std::vector<TokenRecord>& tokens,
                             int64_t num_scored, PolicyVersion version) override {
    const std::vector<TokenId> sequence = Sequence(request, tokens);
    const auto num_prompt = static_cast<int64_t>(request.prompt_tokens.size());
    alone_->Install(Of(version).prepared);
    Pass pass = PassOf(sequence, 0, num_prompt - 1 + num_scored);
    for (int64_t t = 0; t < num_scored; ++t) {
      pass.scores.push_back({.row = num_prompt - 1 + t,
                             .target = tokens[static_cast<size_t>(t)].id,
                             .scale = request.sampling.scale()});
    }
    return alone_->Run(pass)->logprobs;
  }

  Agreement agreement;

 private:
  struct Version {
    WeightSet weights;
    std::shared_ptr<const DecoderWeights> prepared;
  };

  std::unique_ptr<Decoder> MakeCpuDecoder(int64_t num_tokens, int64_t num_threads) const {
    Result<std::unique_ptr<Decoder>> decoder =
        CreateCpuDecoder(config_, {.dtype = dtype_,
                                   .num_blocks = BlocksOf(num_tokens),
                                   .num_threads = num_threads,
                                   .cache_states = true});
    EXPECT_TRUE(decoder.ok()) << decoder.status().message();
    return std::move(decoder).value();
  }

  const Version& Of(PolicyVersion version) {
    const auto found = versions_.find(version);
    if (found != versions_.end()) return found->second;
    WeightSet weights = RandomWeights(config_, static_cast<uint64_t>(version.step()), kWeightScale);
    const auto prepared = alone_->Prepare(weights);
    EXPECT_TRUE(prepared.ok()) << prepared.status().message();
    return versions_.emplace(version, Version{std::move(weights), *prepared}).first->second;
  }

  static std::vector<TokenId> Sequence(const GroupRequest& request,
                                       const std::vector<TokenRecord>& tokens) {
    std::vector<TokenId> sequence = request.prompt_tokens;
    for (const TokenRecord& token : tokens) sequence.push_back(token.id);
    return sequence;
  }

  // Tokens [start, end) of a sequence that is alone in the cache.
  Pass PassOf(const std::vector<TokenId>& sequence, int64_t start, int64_t end) {
    while (static_cast<int64_t>(blocks_.size()) < BlocksOf(end)) {
      blocks_.push_back(static_cast<BlockId>(blocks_.size()));
    }
    Pass pass;
    pass.tokens.assign(sequence.begin() + start, sequence.begin() + end);
    pass.chunks.push_back({.start = start,
                           .num_tokens = end - start,
                           .blocks = std::span(blocks_).first(static_cast<size_t>(BlocksOf(end)))});
    return pass;
  }

  // With the training forward's definition, in double.
  void Compare(const GroupRequest& request, const std::vector<TokenRecord>& tokens,
               const std::vector<TokenId>& sequence, int64_t first, int64_t end,
               PolicyVersion version) {
    const size_t num_prompt = request.prompt_tokens.size();
    const ReferenceResult result =
        ReferenceForward(config_, Of(version).weights,
                         std::span(sequence).first(num_prompt + static_cast<size_t>(end) - 1));
    for (auto t = static_cast<size_t>(first); t < static_cast<size_t>(end); ++t) {
      if (tokens[t].is_tool) continue;
      const std::vector<double>& logits = result.logits[num_prompt - 1 + t];
      const double scale = request.sampling.scale();
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit / scale);
      const double expected = logits[static_cast<size_t>(tokens[t].id)] / scale - std::log(sum);
      agreement.Add(static_cast<double>(tokens[t].logprob) - expected);
    }
  }

  const ModelConfig config_;
  const Dtype dtype_;
  std::unique_ptr<Decoder> alone_;
  std::map<PolicyVersion, Version> versions_;
  std::vector<BlockId> blocks_;
  int64_t num_resampled_ = 0;
  int64_t num_decoders_ = 0;  // have one and two threads in turn
};

ScheduleOptions RandomOptions(uint64_t seed) {
  ScheduleRandom random(seed ^ 0x5eed);
  ScheduleOptions options;
  options.sync_mode = random.Chance(0.9) ? SyncMode::kReprefill : SyncMode::kDrain;
  options.num_groups = random.Between(1, 4);
  options.max_prompt = random.Between(1, 50);
  options.max_tokens = random.Between(1, 50);
  options.max_responses = random.Between(1, 4);
  options.max_pass_tokens = random.Chance(0.3) ? random.Between(2, 8) : random.Between(8, 120);
  options.min_scored = random.Between(1, 10);
  options.max_scored = random.Between(1, 40);
  options.max_spare_blocks = random.Chance(0.5) ? random.Below(4) : random.Below(40);
  options.sync_chance = random.Chance(0.2) ? 0 : 0.1;
  options.cancel_chance = 0.02;
  options.restart_chance = 0.02;
  return options;
}

void RunSchedules(Architecture architecture, Dtype dtype) {
  ModelWorld world(TinyModel(architecture), dtype);
  int64_t num_finished = 0, num_scored = 0;
  for (int64_t seed = 0; seed < NumSchedules(); ++seed) {
    const auto bits = static_cast<uint64_t>(seed);
    ScheduleDriver driver(world, RandomOptions(bits), bits);
    ASSERT_TRUE(driver.Run()) << "seed " << seed << ", " << driver.failure();
    num_finished += driver.num_finished();
    num_scored += driver.num_scored();
  }
  EXPECT_GT(num_finished, NumSchedules());
  EXPECT_GT(num_scored, NumSchedules() / 4);
  ASSERT_GT(world.agreement.count, 0);
  ::testing::Test::RecordProperty("max_difference", Concat(world.agreement.max));
  ::testing::Test::RecordProperty("mean_difference", Concat(world.agreement.mean()));
  if (dtype == Dtype::kF32) {
    EXPECT_LT(world.agreement.max, kMaxDifference);
    EXPECT_LT(world.agreement.mean(), kMeanDifference);
  } else {
    EXPECT_LT(world.agreement.mean(), kMeanDifferenceBf16);
  }
}

TEST(ModelScheduleTest, LlamaInFloat32) {
  RunSchedules(Architecture::kLlama, Dtype::kF32);
}
TEST(ModelScheduleTest, Qwen3InFloat32) {
  RunSchedules(Architecture::kQwen3, Dtype::kF32);
}
TEST(ModelScheduleTest, Qwen3MoeInFloat32) {
  RunSchedules(Architecture::kQwen3Moe, Dtype::kF32);
}
TEST(ModelScheduleTest, LlamaInBfloat16) {
  RunSchedules(Architecture::kLlama, Dtype::kBF16);
}
TEST(ModelScheduleTest, Qwen3InBfloat16) {
  RunSchedules(Architecture::kQwen3, Dtype::kBF16);
}
TEST(ModelScheduleTest, Qwen3MoeInBfloat16) {
  RunSchedules(Architecture::kQwen3Moe, Dtype::kBF16);
}

}  // namespace
}  // namespace pace
