// The trainer on several ranks, which are threads here: what each computes must not depend on how
// many there are. trainer_gloo_ranks_test.cc has the objectives.
#include <gtest/gtest.h>

#include <utility>

#include "ranks/thread_ranks.h"
#include "train/advantage/advantages.h"
#include "train/rank_messages.h"
#include "train/trainer_on_ranks.h"

namespace pace {
namespace {

Outcome OnRanks(const RankedRun& run, int64_t num_ranks) {
  if (num_ranks == 1) return OnOneRank(run);
  Outcome outcome;
  RunThreadRanks(num_ranks, [&](Communicator& ranks) {
    Outcome own = OnRank(run, ranks);
    if (ranks.rank() == 0) outcome = std::move(own);
  });
  return outcome;
}

// Gradient, weights and metrics are those of one rank.
void ExpectSame(const RankedRun& run, int64_t num_ranks, const std::string& what) {
  const Outcome one = OnRanks(run, 1);
  const Outcome several = OnRanks(run, num_ranks);
  EXPECT_LT(GradientDistance(one, several), 1e-6) << what;
  ExpectSameMetrics(one, several, what);
}

TEST(TrainerRanksTest, RanksWithoutASequenceTakePart) {
  for (const ShardMode mode : kModes) {
    RankedRun run;
    run.num_groups = 1;
    run.options.shard = mode;
    ExpectSame(run, 4, Concat("one group ", ShardModeName(mode)));
  }
}

TEST(TrainerRanksTest, SeveralStepsEndInTheWeightsOfOneRankAndInTheSameBitsTwice) {
  for (const Architecture architecture : {Architecture::kQwen3, Architecture::kQwen3Moe}) {
    for (const ShardMode mode : kModes) {
      RankedRun run;
      run.architecture = architecture;
      run.num_steps = 5;
      run.options.num_minibatches = 2;
      run.options.token_budget = 40;
      run.options.shard = mode;
      run.options.adamw.weight_decay = 0.1;
      const Outcome one = OnRanks(run, 1);
      const Outcome two = OnRanks(run, 2);
      EXPECT_LT(Distance(one.state.weights.views(), two.state.weights.views(), ""), 1e-5)
          << ShardModeName(mode);
      const Outcome again = OnRanks(run, 2);
      EXPECT_TRUE(SameBits(two.state.weights.views(), again.state.weights.views()))
          << ShardModeName(mode);
      EXPECT_TRUE(SameBits(two.state.tensors, again.state.tensors)) << ShardModeName(mode);
    }
  }
}

TEST(TrainerRanksTest, Bfloat16ComputesOverFloat32Masters) {
  for (const ShardMode mode : kModes) {
    RankedRun run;
    run.network.compute_in_bf16 = true;
    run.options.token_budget = 30;
    run.options.shard = mode;
    const Outcome one = OnRanks(run, 1);
    const Outcome three = OnRanks(run, 3);
    EXPECT_LT(Distance(one.state.tensors, three.state.tensors, ".m"), 2e-2) << ShardModeName(mode);
  }
}

// A state of any number of ranks continues on any other.
TEST(TrainerRanksTest, AStateOfFourRanksContinuesOnOneTwoAndThree) {
  RankedRun first;
  first.num_steps = 2;
  first.options.advantage = *AdvantageNamed("gae");
  first.options.shard = ShardMode::kFull;
  const Outcome saved = OnRanks(first, 4);
  RankedRun rest = first;
  rest.num_steps = 3;
  RankedRun whole = first;
  whole.num_steps = 5;
  const Outcome straight = OnRanks(whole, 4);
  for (const int64_t num_ranks : {1, 2, 3, 4}) {
    for (const ShardMode mode : kModes) {
      rest.options.shard = mode;
      Outcome resumed;
      const auto drive = [&](Trainer& trainer) {
        const Status status = trainer.Restore(saved.state);
        ASSERT_TRUE(status.ok()) << status.message();
        resumed = Drive(trainer, rest);
      };
      if (num_ranks == 1) {
        drive(*TrainerOf(rest, nullptr));
      } else {
        RunThreadRanks(num_ranks, [&](Communicator& ranks) {
          std::unique_ptr<TorchTrainer> own = TrainerOf(rest, &ranks);
          if (ranks.rank() > 0) {
            EXPECT_TRUE(Follow(*own, ranks).ok());
            return;
          }
          LeadingTrainer trainer(std::move(own), ranks);
          drive(trainer);
        });
      }
      EXPECT_EQ(resumed.state.num_updates, straight.state.num_updates);
      EXPECT_LT(Distance(straight.state.weights.views(), resumed.state.weights.views(), ""), 1e-5)
          << num_ranks << " " << ShardModeName(mode);
      // Nothing is lost on the way.
      if (num_ranks == 4 && mode == ShardMode::kFull) {
        EXPECT_TRUE(SameBits(straight.state.tensors, resumed.state.tensors));
      }
    }
  }
}

TEST(TrainerRanksTest, AStateThatLacksATensorIsRefusedOnEveryRank) {
  RankedRun run;
  Outcome saved = OnRanks(run, 1);
  saved.state.tensors.erase(saved.state.tensors.begin());
  RunThreadRanks(2, [&](Communicator& ranks) {
    std::unique_ptr<TorchTrainer> own = TrainerOf(run, &ranks);
    if (ranks.rank() > 0) {
      EXPECT_NE(Follow(*own, ranks).message().find("is missing"), std::string::npos);
      return;
    }
    LeadingTrainer trainer(std::move(own), ranks);
    EXPECT_NE(trainer.Restore(saved.state).message().find("is missing"), std::string::npos);
  });
}

TEST(TrainerRanksTest, ABrokenGroupIsAnErrorOfTheStep) {
  for (const ShardMode mode : kModes) {
    RankedRun run;
    run.options.shard = mode;
    ThreadRanks ranks(2);
    const std::unique_ptr<TorchTrainer> trainer = TrainerOf(run, &ranks.At(0));
    ranks.Break();
    const Result<MetricList> step = trainer->Step(BatchOf(run));
    ASSERT_FALSE(step.ok()) << ShardModeName(mode);
    EXPECT_NE(step.status().message().find("rank 0 of 2"), std::string::npos)
        << step.status().message();
  }
}

TEST(TrainerRanksTest, ShardedGradientsWithSeveralThreadsAreRefused) {
  ThreadRanks ranks(2);
  TrainerOptions options = Plain();
  options.shard = ShardMode::kGradients;
  options.num_threads = 2;
  const Status status =
      TorchTrainer::Create(MakeNetwork(3), options, std::nullopt, &ranks.At(0)).status();
  EXPECT_NE(status.message().find("train.threads = 2"), std::string::npos);
}

TEST(TrainerRanksTest, SequencesSurviveTheWayBetweenRanks) {
  std::vector<TrainSequence> sequences = BatchOf({});
  sequences[1].baseline.reset();
  const std::string bytes = EncodeSequences(sequences);
  const Result<std::vector<TrainSequence>> read = DecodeSequences(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(EncodeSequences(*read), bytes);
  EXPECT_FALSE((*read)[1].baseline.has_value());
  EXPECT_EQ((*read)[2].tokens, sequences[2].tokens);
  for (const size_t size : {size_t{0}, size_t{7}, bytes.size() - 1}) {
    EXPECT_FALSE(DecodeSequences(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeSequences(bytes + "x").ok());
}

}  // namespace
}  // namespace pace
