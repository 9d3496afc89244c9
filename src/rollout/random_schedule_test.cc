// Ten thousand random lives of an engine over a decoder that notices mistakes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "rollout/fake_decoder.h"
#include "rollout/schedule_driver.h"
#include "rollout/test_tokenizers.h"

namespace pace {
namespace {

constexpr int64_t kVocabulary = 13;

// PACE_SCHEDULES overrides how many schedules a test runs.
int64_t NumSchedules(int64_t by_default) {
  const char* const named = std::getenv("PACE_SCHEDULES");
  return named == nullptr ? by_default : std::atoll(named);
}

class FakeWorld final : public ScheduleWorld {
 public:
  FakeWorld() {
    config_.vocab_size = kVocabulary;
    config_.max_positions = 1000;
  }

  const ModelConfig& config() const override { return config_; }
  std::unique_ptr<Decoder> MakeDecoder(int64_t num_blocks, SyncMode mode) override {
    auto decoder =
        std::make_unique<FakeDecoder>(FakeDecoder::Options{.vocab_size = kVocabulary,
                                                           .max_positions = config_.max_positions,
                                                           .num_blocks = num_blocks,
                                                           .check_weights = mode != SyncMode::kKeep,
                                                           .speculates = num_blocks % 2 == 0});
    newest_ = decoder.get();
    return decoder;
  }
  std::shared_ptr<const DecoderWeights> Weights(PolicyVersion version) override {
    return std::make_shared<FakeDecoder::Weights>(Number(version));
  }
  bool FailSoon() override {
    newest_->FailNext();
    return true;
  }

  std::vector<Sampled> Resample(const GroupRequest& request, int64_t member,
                                const std::vector<TokenRecord>& tokens, int64_t first, int64_t end,
                                PolicyVersion version) override {
    std::vector<Sampled> samples;
    uint64_t hash = PromptHash(request);
    for (int64_t t = 0; t < end; ++t) {
      const SampleKey key{request.seed, request.prompt.value(), member, t};
      if (t >= first) {
        samples.push_back(network_.Draw(hash, Number(version), request.sampling, key));
      }
      hash = FakeNetwork::Extend(hash, tokens[static_cast<size_t>(t)].id);
    }
    return samples;
  }
  std::vector<float> Rescore(const GroupRequest& request, const std::vector<TokenRecord>& tokens,
                             int64_t num_scored, PolicyVersion version) override {
    std::vector<float> logprobs;
    uint64_t hash = PromptHash(request);
    for (int64_t t = 0; t < num_scored; ++t) {
      const TokenId id = tokens[static_cast<size_t>(t)].id;
      logprobs.push_back(FakeNetwork::LogProb(hash, Number(version), request.sampling.scale(), id));
      hash = FakeNetwork::Extend(hash, id);
    }
    return logprobs;
  }

 private:
  static uint64_t Number(PolicyVersion version) { return static_cast<uint64_t>(version.step()); }
  static uint64_t PromptHash(const GroupRequest& request) {
    uint64_t hash = 0;
    for (const TokenId id : request.prompt_tokens) hash = FakeNetwork::Extend(hash, id);
    return hash;
  }

  const FakeNetwork network_{kVocabulary};
  ModelConfig config_;
  FakeDecoder* newest_ = nullptr;
};

ScheduleOptions RandomOptions(uint64_t seed, const Tokenizer& tokenizer) {
  ScheduleRandom random(seed ^ 0x5eed);
  ScheduleOptions options;
  options.sync_mode = random.Chance(0.7)   ? SyncMode::kReprefill
                      : random.Chance(0.5) ? SyncMode::kKeep
                                           : SyncMode::kDrain;
  options.num_groups = random.Between(1, 5);
  options.max_prompt = random.Between(1, 60);
  options.max_tokens = random.Between(1, 50);
  options.max_responses = random.Between(1, 5);
  options.max_pass_tokens = random.Chance(0.5) ? random.Between(1, 8) : random.Between(8, 200);
  options.min_scored = random.Between(1, 10);
  options.max_scored = random.Between(1, 40);
  options.max_spare_blocks = random.Chance(0.5) ? random.Below(4) : random.Below(40);
  options.sync_chance = random.Chance(0.3) ? 0 : 0.1;
  options.cancel_chance = random.Chance(0.5) ? 0 : 0.03;
  options.restart_chance = random.Chance(0.5) ? 0 : 0.03;
  options.failure_chance = random.Chance(0.8) ? 0 : 0.02;
  if (random.Chance(0.5)) options.tokenizer = tokenizer;
  return options;
}

TEST(RandomScheduleTest, EveryResponseIsTheReferencesAndNoBlockLeaks) {
  const Tokenizer tokenizer = LetterTokenizer(kVocabulary);
  FakeWorld world;
  int64_t num_steps = 0, num_finished = 0, num_scored = 0, num_interrupted = 0, num_preempted = 0;
  int64_t num_continued = 0;
  const int64_t num_schedules = NumSchedules(10000);
  for (int64_t seed = 0; seed < num_schedules; ++seed) {
    const auto bits = static_cast<uint64_t>(seed);
    ScheduleDriver driver(world, RandomOptions(bits, tokenizer), bits);
    ASSERT_TRUE(driver.Run()) << "seed " << seed << ", " << driver.failure();
    num_steps += driver.num_steps();
    num_finished += driver.num_finished();
    num_scored += driver.num_scored();
    num_interrupted += driver.num_interrupted();
    num_preempted += driver.num_preempted();
    num_continued += driver.num_continued();
  }
  // What the schedules were meant to hold did occur.
  if (num_schedules < 1000) return;
  EXPECT_GT(num_finished, 2 * num_schedules);
  EXPECT_GT(num_interrupted, num_schedules);
  EXPECT_GT(num_scored, num_schedules / 2);
  EXPECT_GT(num_preempted, num_schedules / 10);
  EXPECT_GT(num_continued, num_schedules / 4);
  RecordProperty("steps", std::to_string(num_steps));
}

}  // namespace
}  // namespace pace
