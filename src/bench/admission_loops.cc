#include "bench/admission_loops.h"

#include <utility>

#include "bench/group_mix.h"
#include "bench/measurement.h"
#include "core/check.h"
#include "core/clock.h"

namespace pace {
namespace {

constexpr int64_t kBatch = 64;
constexpr int64_t kNumGroups = 4096;
constexpr PolicyVersion kFirstStep(100);
constexpr PoolView kPool{.occupancy = 96, .batch = kBatch};

std::unique_ptr<AdmissionPolicy> MakeFilledPolicy(int64_t window,
                                                  const std::vector<GroupSummary>& groups) {
  AdmissionOptions options;
  options.window = window;
  auto policy = MakeAdmissionPolicy(options, kBatch, /*seed=*/1);
  policy->BeginStep(kFirstStep, kPool);
  for (int64_t i = 0; i < 2 * window; ++i) {
    const GroupSummary& group = groups[static_cast<size_t>(i) % groups.size()];
    policy->Observe(group, policy->Judge(group));
  }
  const StepPlan plan = policy->BeginStep(kFirstStep, kPool);
  PACE_CHECK(plan.cutoff.has_value(), "the policy is still warming up");
  return policy;
}

}  // namespace

VerdictLoop::VerdictLoop(int64_t window)
    : groups_(MakeGroupMix(kNumGroups, kFirstStep)), policy_(MakeFilledPolicy(window, groups_)) {}

double VerdictLoop::Run(double seconds) const {
  const WallClock clock;
  std::vector<double> passes;
  double elapsed = 0;
  while (elapsed < seconds || passes.empty()) {
    for (const GroupSummary& group : groups_) Keep(policy_->Judge(group));
    const double now = clock.Now().count();
    passes.push_back(now - elapsed);
    elapsed = now;
  }
  return MedianOf(std::move(passes)) / static_cast<double>(kNumGroups) * 1e9;
}

BeginStepLoop::BeginStepLoop(int64_t window)
    : groups_(MakeGroupMix(kNumGroups, kFirstStep)), policy_(MakeFilledPolicy(window, groups_)) {}

double BeginStepLoop::Run(double seconds) {
  const WallClock clock;
  std::vector<double> steps;
  double timed = 0;
  while (timed < seconds || steps.empty()) {
    const int64_t num_drawn = 12 + num_steps_ * 37 % 89;
    for (int64_t i = 0; i < num_drawn; ++i) {
      const GroupSummary group = Later(groups_[next_group_], num_steps_);
      policy_->Observe(group, policy_->Judge(group));
      next_group_ = (next_group_ + 1) % groups_.size();
    }
    ++num_steps_;
    const PolicyVersion step(kFirstStep.step() + num_steps_);
    const Seconds begin = clock.Now();
    Keep(policy_->BeginStep(step, kPool));
    steps.push_back((clock.Now() - begin).count());
    timed += steps.back();
  }
  return MedianOf(std::move(steps)) * 1e6;
}

}  // namespace pace
