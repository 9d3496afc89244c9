// Random worlds, a million events, invariants after each.
#include <gtest/gtest.h>

#include "control/pace_admission.h"
#include "control/supply_policies.h"
#include "coordinator/chaos_driver.h"

namespace pace {
namespace {

// Verdicts without sense: each group by a coin, or all rejected.
class CoinAdmission final : public AdmissionPolicy {
 public:
  CoinAdmission(double reject, uint64_t seed) : reject_(reject), random_(seed, 1) {}
  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) override {
    plan_ = {.step = step, .occupancy = pool.occupancy};
    return plan_;
  }
  Decision Judge(const GroupSummary& group) const override {
    Decision decision = Measure(group, plan_.step);
    const bool reject = random_.Uniform(static_cast<uint64_t>(group.id.value())) < reject_;
    decision.verdict = reject ? Verdict::kReject : Verdict::kAdmit;
    decision.reason = reject ? Reason::kOverBound : Reason::kWithinBound;
    return decision;
  }
  void Observe(const GroupSummary&, const Decision&) override {}
  double Score(const GroupSummary& group) const override {
    return random_.Uniform(static_cast<uint64_t>(group.id.value()), 1);
  }
  AdmissionState Save() const override { return {.step = plan_.step, .plan = plan_}; }
  Status Restore(const AdmissionState& state) override {
    plan_ = state.plan;
    return Status::Ok();
  }

 private:
  const double reject_;
  const CounterRandom random_;
  StepPlan plan_;
};

// A supply that abandons by coin and is now and then stingy to the point of
// stopping the run: the coordinator must carry on.
class WildSupply final : public SupplyPolicy {
 public:
  explicit WildSupply(uint64_t seed) : random_(seed, 2) {}
  int64_t NumToStart(const SupplyView& view) const override {
    const double u = random_.Uniform(static_cast<uint64_t>(view.num_started),
                                     static_cast<uint64_t>(view.trainer.step()));
    return u < 0.4 ? 0 : 20 - view.num_outstanding();
  }
  bool MayAbandon() const override { return true; }
  Abandon ShouldAbandon(const RunningGroup& group, const SupplyView&) const override {
    const double u = random_.Uniform(static_cast<uint64_t>(group.id.value()), 7);
    return u < 0.05 ? Abandon::kDrop : u < 0.1 ? Abandon::kKeepPrefix : Abandon::kNo;
  }

 private:
  const CounterRandom random_;
};

struct World {
  ChaosOptions chaos;
  AdmissionOptions admission;
  int64_t admission_kind = 0;
  double threshold = 0;
  SupplyKind supply_kind = SupplyKind::kThreshold;
  int64_t bound = 0;
  bool wild_supply = false;
  uint64_t seed = 0;

  std::unique_ptr<Coordinator> Make(CoordinatorObserver* observer = nullptr) const {
    std::unique_ptr<AdmissionPolicy> policy;
    switch (admission_kind) {
      case 0:
        policy = std::make_unique<CoinAdmission>(1.0, seed);  // rejects everything
        break;
      case 1:
        policy = std::make_unique<CoinAdmission>(0.7, seed);
        break;
      default:
        policy = MakeAdmissionPolicy(admission, chaos.coordinator.batch, seed);
    }
    std::unique_ptr<SupplyPolicy> supply;
    if (wild_supply) {
      supply = std::make_unique<WildSupply>(seed);
    } else {
      SupplyOptions options;
      options.policy = supply_kind;
      options.bound = bound;
      options.threshold = threshold;
      options.sync_interval = chaos.coordinator.sync_interval;
      supply = MakeSupplyPolicy(options, chaos.coordinator.batch);
    }
    return std::make_unique<Coordinator>(chaos.coordinator, std::move(policy), std::move(supply),
                                         observer);
  }
};

World RandomWorld(uint64_t seed) {
  TestRandom random(seed ^ 0xabcdef);
  World world;
  world.seed = seed;
  CoordinatorOptions& options = world.chaos.coordinator;
  options.batch = 1 + random.Below(4);
  options.group_size = 1 + random.Below(3);
  options.num_steps = random.Chance(0.2) ? 1 + random.Below(20) : 1000000;
  options.sync_interval = 1 + random.Below(3);
  options.checkpoint_every = random.Chance(0.3) ? 1 + random.Below(5) : 0;
  options.evaluate_every = random.Chance(0.3) ? 1 + random.Below(5) : 0;
  options.requeue = static_cast<Requeue>(random.Below(4));
  options.max_attempts = 1 + random.Below(3);
  options.pool.draw_order = static_cast<DrawOrder>(random.Below(3));
  if (random.Chance(0.2)) options.pool.max_groups = options.batch + random.Below(5);
  if (random.Chance(0.2)) options.pool.max_bytes = 1 + random.Below(5000);
  world.chaos.max_workers = 1 + random.Below(5);
  world.admission_kind = random.Below(6);
  world.admission.policy = static_cast<AdmissionKind>(random.Below(6));
  world.admission.target_occupancy = random.Below(3);
  world.admission.beta = random.Chance(0.5) ? 0.0 : 0.9;
  world.admission.max_budget = random.Chance(0.5) ? 1.0 : 0.9;
  world.admission.min_observations = 1 + random.Below(6);
  world.admission.window = 8 + random.Below(50);
  world.admission.cutoff = static_cast<CutoffRule>(random.Below(2));
  world.admission.ties = static_cast<TieRule>(random.Below(2));
  world.admission.weight_scope = static_cast<WeightScope>(random.Below(2));
  world.admission.k = static_cast<double>(random.Below(3));
  world.threshold = static_cast<double>(random.Below(4));
  world.wild_supply = random.Chance(0.15);
  if (random.Chance(0.5)) {
    world.supply_kind = static_cast<SupplyKind>(random.Below(6));
    world.bound = random.Below(4);
  }
  return world;
}

TEST(CoordinatorPropertyTest, KeepsItsInvariantsOverAMillionRandomEvents) {
  int64_t num_events = 0, num_steps = 0, num_restored = 0;
  for (uint64_t seed = 0; num_events < 1000000; ++seed) {
    const World world = RandomWorld(seed);
    ChaosDriver driver(world.chaos, seed, world.Make());
    TestRandom random(seed);
    const int64_t shadow_at = 200 + random.Below(1000);
    bool shadowed = false;
    int64_t idle = 0;
    while (driver.num_events() < 4000 && idle < 1000) {
      idle = driver.DeliverRandom() ? 0 : idle + 1;
      if (!shadowed && driver.num_events() >= shadow_at) {
        shadowed = true;
        const auto snapshot = SnapshotFromJson(ToJson(driver.coordinator().Save()), "snapshot");
        ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
        auto copy = world.Make();
        const Status restored = copy->Restore(*snapshot);
        ASSERT_TRUE(restored.ok()) << restored.message();
        copy->CheckInvariants();
        driver.Shadow(std::move(copy));
        ++num_restored;
      }
      ASSERT_EQ(driver.failure(), "") << "seed " << seed;
    }
    num_events += driver.num_events();
    num_steps += driver.num_steps_trained();
  }
  RecordProperty("events", static_cast<int>(num_events));
  EXPECT_GT(num_steps, 10000);
  EXPECT_GT(num_restored, 100);
}

// From any reachable state, a fair world completes the next step within a
// bounded number of events, whatever the verdicts are.
TEST(CoordinatorPropertyTest, AlwaysCompletesTheNextStep) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const World world = RandomWorld(seed);
    ChaosDriver driver(world.chaos, seed, world.Make());
    TestRandom random(seed);
    const int64_t num_random = random.Below(400);
    for (int64_t i = 0; i < num_random; ++i) driver.DeliverRandom();
    for (int64_t step = 0; step < 5; ++step) {
      const int64_t before = driver.num_steps_trained();
      int64_t num_fair = 0;
      while (driver.num_steps_trained() == before && driver.DeliverFair()) {
        ASSERT_LT(++num_fair, 20000)
            << "seed " << seed << ": " << driver.coordinator().WhyWaiting();
      }
      ASSERT_TRUE(driver.num_steps_trained() > before || driver.coordinator().stopped())
          << "seed " << seed << ": " << driver.coordinator().WhyWaiting();
    }
    ASSERT_EQ(driver.failure(), "") << "seed " << seed;
  }
}

TEST(CoordinatorPropertyTest, ThresholdZeroIsStrictlyOnPolicy) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    World world = RandomWorld(seed);
    world.chaos.coordinator.sync_interval = 1;
    world.chaos.coordinator.num_steps = 1000000;
    world.chaos.check_on_policy = true;
    world.threshold = 0;
    world.supply_kind = SupplyKind::kThreshold;
    world.wild_supply = false;
    ChaosDriver driver(world.chaos, seed, world.Make());
    for (int64_t i = 0; i < 2000; ++i) driver.DeliverRandom();
    ASSERT_EQ(driver.failure(), "") << "seed " << seed;
  }
}

// What each step rejected beside its budget.
class BudgetObserver final : public CoordinatorObserver {
 public:
  void OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion>, const PoolState&) override {
    EndStep();
    budget_ = plan.budget.value();
  }
  void OnGroupDrawn(const GroupSummary&, const Decision& decision,
                    std::optional<PolicyVersion>) override {
    ++num_offered_;
    num_rejected_ += decision.verdict == Verdict::kReject ? 1 : 0;
  }
  // Largest |rejected - budget * drawn| of any step, and rejections of all.
  double largest_gap() const { return largest_gap_; }
  int64_t num_rejected_in_all() const { return num_rejected_in_all_; }

 private:
  void EndStep() {
    const double allowed = budget_ * static_cast<double>(num_offered_);
    largest_gap_ = std::max(largest_gap_, std::abs(static_cast<double>(num_rejected_) - allowed));
    num_rejected_in_all_ += num_rejected_;
    num_offered_ = num_rejected_ = 0;
  }

  double budget_ = 0;
  double largest_gap_ = 0;
  int64_t num_offered_ = 0, num_rejected_ = 0, num_rejected_in_all_ = 0;
};

// With cutoff: pool every step rejects its budget, rounded down, in worlds where workers come, go
// and fall behind at random.
TEST(CoordinatorPropertyTest, ThePoolCutoffMeetsTheBudgetInEveryStep) {
  int64_t num_rejected = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    World world = RandomWorld(seed);
    world.admission_kind = 2;
    world.admission.policy = AdmissionKind::kPace;
    world.admission.cutoff = CutoffRule::kPool;
    BudgetObserver observer;
    ChaosDriver driver(world.chaos, seed, world.Make(&observer));
    for (int64_t i = 0; i < 3000; ++i) driver.DeliverRandom();
    ASSERT_EQ(driver.failure(), "") << "seed " << seed;
    ASSERT_LE(observer.largest_gap(), 1.0) << "seed " << seed;
    num_rejected += observer.num_rejected_in_all();
  }
  EXPECT_GT(num_rejected, 1000);
}

}  // namespace
}  // namespace pace
