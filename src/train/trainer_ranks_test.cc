// The trainer on several ranks, which are threads here: what each computes must not depend on how
// many there are.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "ranks/thread_ranks.h"
#include "train/advantage/advantages.h"
#include "train/leading_trainer.h"
#include "train/loss/losses.h"
#include "train/rank_messages.h"
#include "train/small_trainer.h"

namespace pace {
namespace {

// What one trainer has after its calls.
struct Outcome {
  MetricList metrics = {};
  TrainerState state = {};
};

struct RankedRun {
  TrainerOptions options = Plain();
  TrainingNetwork::Options network = {};
  Architecture architecture = Architecture::kQwen3;
  int64_t num_groups = 4;
  int64_t num_steps = 1;
};

TrainingNetwork NetworkOf(const RankedRun& run, uint64_t seed) {
  const ModelConfig config = TinyModel(run.architecture);
  return TrainingNetwork::Create(config, RandomWeights(config, seed, 0.2), run.network).value();
}

std::unique_ptr<TorchTrainer> TrainerOf(const RankedRun& run, Communicator* ranks) {
  at::set_num_threads(1);
  std::optional<TrainingNetwork> initial;
  if (run.options.kl.active()) initial.emplace(NetworkOf(run, 4));
  Result<std::unique_ptr<TorchTrainer>> trainer =
      TorchTrainer::Create(NetworkOf(run, 3), run.options, std::move(initial), ranks);
  EXPECT_TRUE(trainer.ok()) << trainer.status().message();
  return std::move(*trainer);
}

std::vector<TrainSequence> BatchOf(const RankedRun& run) {
  std::vector<TrainSequence> sequences = Sequences(TinyModel(run.architecture), run.num_groups);
  for (TrainSequence& sequence : sequences) sequence.baseline = 0.25;
  return sequences;
}

Outcome Drive(Trainer& trainer, const RankedRun& run) {
  Outcome outcome;
  for (int64_t step = 0; step < run.num_steps; ++step) {
    Result<MetricList> metrics = trainer.Step(BatchOf(run));
    EXPECT_TRUE(metrics.ok()) << metrics.status().message();
    if (metrics.ok()) outcome.metrics = std::move(*metrics);
  }
  Result<TrainerState> state = trainer.Copy();
  EXPECT_TRUE(state.ok()) << state.status().message();
  if (state.ok()) outcome.state = std::move(*state);
  return outcome;
}

Outcome OnRanks(const RankedRun& run, int64_t num_ranks) {
  if (num_ranks == 1) return Drive(*TrainerOf(run, nullptr), run);
  Outcome outcome;
  RunThreadRanks(num_ranks, [&](Communicator& ranks) {
    std::unique_ptr<TorchTrainer> own = TrainerOf(run, &ranks);
    if (ranks.rank() > 0) {
      const Status status = Follow(*own, ranks);
      EXPECT_TRUE(status.ok()) << status.message();
      return;
    }
    LeadingTrainer trainer(std::move(own), ranks);
    outcome = Drive(trainer, run);
  });
  return outcome;
}

// |a - b| / |a| over the tensors whose names end so.
double Distance(const TensorViews& left, const TensorViews& right, std::string_view suffix) {
  double difference = 0;
  double size = 0;
  for (const auto& [name, view] : left) {
    if (!name.ends_with(suffix)) continue;
    const TensorView& other = right.at(name);
    EXPECT_EQ(view.shape, other.shape) << name;
    const auto* a = reinterpret_cast<const float*>(view.bytes.data());
    const auto* b = reinterpret_cast<const float*>(other.bytes.data());
    for (size_t i = 0; i < view.bytes.size() / sizeof(float); ++i) {
      difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
      size += static_cast<double>(a[i]) * a[i];
    }
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

bool SameBits(const TensorViews& left, const TensorViews& right) {
  for (const auto& [name, view] : left) {
    const TensorView& other = right.at(name);
    if (!std::equal(view.bytes.begin(), view.bytes.end(), other.bytes.begin(), other.bytes.end())) {
      return false;
    }
  }
  return left.size() == right.size();
}

// Gradient (the first moments after one update), weights and metrics are those of one rank.
void ExpectSame(const RankedRun& run, int64_t num_ranks, const std::string& what) {
  const Outcome one = OnRanks(run, 1);
  const Outcome several = OnRanks(run, num_ranks);
  EXPECT_LT(Distance(one.state.tensors, several.state.tensors, ".m"), 1e-6) << what;
  EXPECT_EQ(one.state.num_updates, several.state.num_updates) << what;
  ASSERT_EQ(one.metrics.size(), several.metrics.size()) << what;
  for (const Metric& metric : one.metrics) {
    const double value = MetricOf(several.metrics, metric.name);
    EXPECT_NEAR(value, metric.value, 1e-5 * std::max(1.0, std::abs(metric.value)))
        << what << " " << metric.name;
  }
}

std::string NameOf(ShardMode mode) {
  constexpr std::array<const char*, 4> kNames = {"none", "optimizer", "gradients", "full"};
  return kNames[static_cast<size_t>(mode)];
}

constexpr std::array<ShardMode, 4> kModes = {ShardMode::kNone, ShardMode::kOptimizer,
                                             ShardMode::kGradients, ShardMode::kFull};

TEST(TrainerRanksTest, EveryLossAndAdvantageHasTheGradientOfTheWholeMinibatch) {
  int64_t turn = 0;
  for (const std::string_view loss : PolicyLossNames()) {
    for (const std::string_view advantage : AdvantageEstimatorNames()) {
      RankedRun run;
      run.options.loss = *LossNamed(loss);
      run.options.advantage = *AdvantageNamed(advantage);
      run.options.token_budget = 40;
      const ShardMode mode = kModes[static_cast<size_t>(turn) % kModes.size()];
      run.options.shard = mode;
      const int64_t num_ranks = 2 + turn / 4 % 3;
      ++turn;
      ExpectSame(run, num_ranks, Concat(loss, " ", advantage, " ", NameOf(mode), " ", num_ranks));
    }
  }
}

// Every setting that needs something of the whole minibatch, on every kind of shards.
TEST(TrainerRanksTest, CorrectionsPenaltiesAndTheValueHeadSeeAllRanks) {
  const std::map<std::string, std::function<void(TrainerOptions&)>> changes = {
      {"kl", [](TrainerOptions& o) { o.kl.loss_coefficient = 0.1; }},
      {"kl_reward", [](TrainerOptions& o) { o.kl.reward_coefficient = 0.1; }},
      {"ess", [](TrainerOptions& o) { o.ess.emplace(); }},
      {"opob", [](TrainerOptions& o) { o.opob.emplace(); }},
      {"entropy", [](TrainerOptions& o) { o.entropy_bonus = 0.01; }},
      {"clip", [](TrainerOptions& o) { o.max_grad_norm = 1e-3; }},
      {"proximal", [](TrainerOptions& o) { o.reference = RatioReference::kProximal; }},
      {"skip", [](TrainerOptions& o) { o.skip_equal_rewards = true; }},
      {"value",
       [](TrainerOptions& o) {
         o.advantage = *AdvantageNamed("gae");
         o.value.trains_trunk = true;
       }},
  };
  for (const auto& [name, change] : changes) {
    for (const ShardMode mode : kModes) {
      RankedRun run;
      change(run.options);
      run.options.token_budget = 30;
      run.options.shard = mode;
      ExpectSame(run, 3, Concat(name, " ", NameOf(mode)));
    }
  }
}

TEST(TrainerRanksTest, ExpertsAndRecomputedLayersAreSharedLikeTheRest) {
  for (const ShardMode mode : kModes) {
    for (const bool recompute : {false, true}) {
      RankedRun run;
      run.architecture = Architecture::kQwen3Moe;
      run.network.recompute_layers = recompute;
      run.options.token_budget = 30;
      run.options.shard = mode;
      run.options.adamw.weight_decay = 0.1;
      ExpectSame(run, 3, Concat("experts ", NameOf(mode), recompute ? " recomputed" : ""));
    }
  }
}

TEST(TrainerRanksTest, RanksWithoutASequenceTakePart) {
  for (const ShardMode mode : kModes) {
    RankedRun run;
    run.num_groups = 1;
    run.options.shard = mode;
    ExpectSame(run, 4, Concat("one group ", NameOf(mode)));
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
          << NameOf(mode);
      const Outcome again = OnRanks(run, 2);
      EXPECT_TRUE(SameBits(two.state.weights.views(), again.state.weights.views())) << NameOf(mode);
      EXPECT_TRUE(SameBits(two.state.tensors, again.state.tensors)) << NameOf(mode);
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
    EXPECT_LT(Distance(one.state.tensors, three.state.tensors, ".m"), 2e-2) << NameOf(mode);
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
          << num_ranks << " " << NameOf(mode);
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
    ASSERT_FALSE(step.ok()) << NameOf(mode);
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
