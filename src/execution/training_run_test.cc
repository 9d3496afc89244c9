#include "execution/training_run.h"

#include <gtest/gtest.h>

#include "core/clock.h"
#include "execution/small_run.h"

namespace pace {
namespace {

class StoppedClock final : public Clock {
 public:
  Seconds Now() const override { return Seconds(0); }
};

std::unique_ptr<TrainingRun> MakeRun(const Settings& settings, const Policy& policy,
                                     const Clock& clock) {
  Result<std::unique_ptr<TrainingRun>> run =
      TrainingRun::Create(settings, policy, clock, nullptr, /*saves=*/false);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return std::move(run).value();
}

TEST(TrainingRunTest, CancelledTokensWereGeneratedAndAreNeverTrained) {
  const Settings settings = SmallSettings();
  const Policy policy = SmallPolicy(settings);
  const StoppedClock clock;
  const auto run = MakeRun(settings, policy, clock);
  PartialResponse unfinished;
  unfinished.tokens = {{.id = 1}, {.id = 2}, {.id = 3, .is_tool = true}};
  run->CountCancelled({unfinished, {}});
  EXPECT_EQ(run->journal().totals().num_tokens_generated, 2);
  EXPECT_EQ(run->journal().totals().num_tokens_never_trained, 2);
}

TEST(TrainingRunTest, TheRecordedLogProbsAreOfTheDistributionThatIsAskedFor) {
  GroupTrajectories group;
  group.prompt_tokens = {1};
  Trajectory trajectory;
  trajectory.response.tokens = {{.id = 2, .logprob = -1.5F, .sampled_logprob = -0.5F}};
  group.members = {trajectory};
  std::vector<TrainSequence> sequences;
  group.AppendTo(sequences);
  group.AppendTo(sequences, RolloutLogprobs::kSampled);
  EXPECT_EQ(sequences[0].rollout_logprobs, std::vector<float>{-1.5F});
  EXPECT_EQ(sequences[1].rollout_logprobs, std::vector<float>{-0.5F});
}

TEST(TrainingRunTest, PrefixesAreNotDroppedInSilence) {
  EXPECT_TRUE(TrainingRun::CheckAbandon({GroupId(1), /*keep_prefix=*/false}).ok());
  EXPECT_FALSE(TrainingRun::CheckAbandon({GroupId(1), /*keep_prefix=*/true}).ok());
}

TEST(TrainingRunTest, ARetryOfAPromptHasRandomNumbersOfItsOwn) {
  const Settings settings = SmallSettings();
  const Policy policy = SmallPolicy(settings);
  const StoppedClock clock;
  const auto run = MakeRun(settings, policy, clock);
  const auto seed = [&](int64_t group, int64_t attempt) {
    return run->Start({GroupId(group), WorkerId(0), PromptIndex(7), attempt})->seed;
  };
  EXPECT_EQ(seed(1, 1), static_cast<uint64_t>(settings.run.seed));
  EXPECT_NE(seed(2, 2), seed(3, 1));
  EXPECT_NE(seed(4, 2), seed(5, 3));
  EXPECT_EQ(seed(6, 2), seed(7, 2));
}

}  // namespace
}  // namespace pace
