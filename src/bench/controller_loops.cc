#include "bench/controller_loops.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "bench/machine.h"
#include "bench/measurement.h"
#include "control/supply_policies.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/random.h"

namespace pace {
namespace {

constexpr int64_t kBatch = 64;
constexpr uint64_t kSeed = 1;
constexpr PolicyVersion kFirstStep(100);
// Groups.
constexpr int64_t kNumMembers = 8;
constexpr uint32_t kStream = 0x6d69;
constexpr double kMeanPrefixScore = 0.05;
// Admission.
constexpr int64_t kNumGroups = 4096;
constexpr PoolView kPool{.occupancy = 96, .batch = kBatch};
// The pool.
constexpr int64_t kMixGroups = 1024;
// The coordinator.
constexpr int64_t kNumNoise = 4096;
constexpr int64_t kNumWarmUpSteps = 100;
// Produced while one batch is trained on.
constexpr double kBatchesPerStep = 1.1;
constexpr double kBatchesPerStepWhileFilling = 4;
constexpr int64_t kResponsesPerClockRead = 1024;

// Draws about one response.
class ResponseDraws {
 public:
  ResponseDraws(const CounterRandom& random, int64_t response)
      : random_(random), response_(static_cast<uint64_t>(response)) {}

  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_.Uniform(response_, next_++) * static_cast<double>(n));
  }
  double Unit() { return random_.Uniform(response_, next_++); }
  double Exponential() { return random_.Exponential(response_, next_++); }

 private:
  const CounterRandom& random_;
  const uint64_t response_;
  uint64_t next_ = 0;
};

MemberSummary MakeMember(ResponseDraws draws, PolicyVersion step) {
  const PolicyVersion completed(step.step() - draws.Below(3));
  const PolicyVersion begun(completed.step() - 1 - draws.Below(3));
  std::vector<Segment> segments = {{begun, 100 + draws.Below(3900)}};
  std::optional<double> prefix_score;
  if (draws.Unit() < 0.6) {
    segments.push_back({completed, 100 + draws.Below(3900)});
    prefix_score = kMeanPrefixScore * draws.Exponential();
  }
  return MemberSummary::Of(segments, completed, prefix_score);
}

std::unique_ptr<AdmissionPolicy> MakeFilledPolicy(int64_t window,
                                                  const std::vector<GroupSummary>& groups) {
  AdmissionOptions options;
  options.window = window;
  auto policy = MakeAdmissionPolicy(options, kBatch, kSeed);
  policy->BeginStep(kFirstStep, kPool);
  for (int64_t i = 0; i < 2 * window; ++i) {
    const GroupSummary& group = groups[static_cast<size_t>(i) % groups.size()];
    policy->Observe(group, policy->Judge(group));
  }
  const StepPlan plan = policy->BeginStep(kFirstStep, kPool);
  PACE_CHECK(plan.cutoff.has_value(), "the policy is still warming up");
  return policy;
}

CoordinatorOptions OptionsOf(int64_t batch, int64_t group_size) {
  CoordinatorOptions options;
  options.batch = batch;
  options.group_size = group_size;
  options.num_steps = std::numeric_limits<int64_t>::max();
  return options;
}

Coordinator MakeCoordinator(const CoordinatorLoopOptions& options) {
  AdmissionOptions admission;
  auto max_outstanding =
      static_cast<int64_t>((1 + options.threshold) * static_cast<double>(options.batch));
  if (options.pool_groups > 0) {
    admission.target_occupancy = 2 * options.pool_groups;
    max_outstanding = 2 * options.pool_groups + options.num_workers * options.groups_per_worker +
                      4 * options.batch;
  }
  return {OptionsOf(options.batch, options.group_size),
          MakeAdmissionPolicy(admission, options.batch, kSeed),
          std::make_unique<ThresholdSupply>(max_outstanding)};
}

}  // namespace

std::vector<GroupSummary> MakeGroupMix(int64_t num_groups, PolicyVersion step) {
  const CounterRandom random(kSeed, kStream);
  std::vector<GroupSummary> groups;
  std::vector<MemberSummary> members;
  for (int64_t g = 0; g < num_groups; ++g) {
    members.clear();
    PolicyVersion assembled;
    for (int64_t m = 0; m < kNumMembers; ++m) {
      members.push_back(MakeMember(ResponseDraws(random, g * kNumMembers + m), step));
      assembled = std::max(assembled, members.back().completed);
    }
    groups.push_back(GroupSummary::Of(GroupId(g), assembled, members, /*num_bytes=*/1 << 16));
    groups.back().members = {};
  }
  return groups;
}

GroupSummary Later(GroupSummary group, int64_t num_steps) {
  for (PolicyVersion* version : {&group.assembled, &group.oldest, &group.stalest_completed}) {
    *version = PolicyVersion(version->step() + num_steps);
  }
  group.completed_sum += num_steps * group.num_members;
  return group;
}

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

PoolLoop::PoolLoop(int64_t num_groups, DrawOrder order)
    : mix_(MakeGroupMix(kMixGroups, kFirstStep)),
      policy_(MakeAdmissionPolicy({}, kBatch, kSeed)),
      pool_(PoolOptions{.draw_order = order}) {
  policy_->BeginStep(kFirstStep, {.occupancy = num_groups, .batch = kBatch});
  const int64_t bytes_before = AllocatedBytes();
  while (pool_.occupancy() < num_groups) Put();
  bytes_per_group_ =
      static_cast<double>(AllocatedBytes() - bytes_before) / static_cast<double>(num_groups);
}

void PoolLoop::Put() {
  GroupSummary summary = mix_[static_cast<size_t>(num_put_ % kMixGroups)];
  summary.id = GroupId(num_put_++);
  const std::vector<Eviction> evictions =
      pool_.Put(PooledGroup(summary, {}, /*keep_members=*/false), *policy_);
  PACE_CHECK(evictions.empty(), "a pool without bounds evicted");
}

double PoolLoop::Run(double seconds) {
  const WallClock clock;
  int64_t num_pairs = 0;
  double elapsed = 0;
  while (elapsed < seconds || num_pairs == 0) {
    pool_.OnStepBegan();
    for (int64_t i = 0; i < kBatch; ++i) {
      Put();
      Keep(pool_.Draw(*policy_));
    }
    num_pairs += kBatch;
    elapsed = clock.Now().count();
  }
  return static_cast<double>(num_pairs) / elapsed;
}

CoordinatorLoop::CoordinatorLoop(const CoordinatorLoopOptions& options)
    : options_(options), bytes_before_(AllocatedBytes()), coordinator_(MakeCoordinator(options)) {
  const CounterRandom random(kSeed, 0x6c6f);
  for (uint64_t i = 0; i < kNumNoise; ++i) noise_.push_back(random.OpenUniform(i));
  worker_versions_.resize(static_cast<size_t>(options.num_workers));
  for (int64_t w = 0; w < options.num_workers; ++w) {
    Send(WorkerJoined{WorkerId(w), options.groups_per_worker});
  }
  filling_ = true;
  while (coordinator_.pool().occupancy() < options.pool_groups) Tick();
  filling_ = false;
  const int64_t warm_at = coordinator_.version().step() + kNumWarmUpSteps;
  while (coordinator_.version().step() < warm_at) Tick();
  const auto num_pooled = static_cast<double>(coordinator_.pool().occupancy());
  bytes_per_pooled_group_ = static_cast<double>(AllocatedBytes() - bytes_before_) / num_pooled;
}

void CoordinatorLoop::Send(const Event& event) {
  for (const Command& command : coordinator_.Handle(event)) {
    if (const auto* start = std::get_if<StartGroup>(&command)) {
      running_.push_back({start->group, start->worker,
                          worker_versions_[static_cast<size_t>(start->worker.value())]});
    } else if (const auto* sync = std::get_if<SyncWeights>(&command)) {
      worker_versions_[static_cast<size_t>(sync->worker.value())] = sync->version;
      syncs_.push_back(*sync);
    } else if (std::holds_alternative<TrainBatch>(command)) {
      step_began_at_ = num_responses_;
    }
  }
}

bool CoordinatorLoop::StepIsDone() const {
  if (!coordinator_.training()) return false;
  if (running_.empty()) return true;
  if (options_.pool_groups > 0 && !filling_) {
    return coordinator_.pool().occupancy() >= options_.pool_groups;
  }
  const double num_batches = static_cast<double>(num_responses_ - step_began_at_) /
                             static_cast<double>(options_.batch * options_.group_size);
  return num_batches >= (filling_ ? kBatchesPerStepWhileFilling : kBatchesPerStep);
}

void CoordinatorLoop::Tick() {
  if (!syncs_.empty()) {
    const SyncWeights sync = syncs_.back();
    syncs_.pop_back();
    Send(WorkerSynced{sync.worker, sync.version});
  } else if (StepIsDone()) {
    Send(StepFinished{coordinator_.version()});
  } else {
    FinishSomeResponse();
  }
}

void CoordinatorLoop::FinishSomeResponse() {
  // Marsaglia's xorshift: cheap, so that what is timed is the coordinator.
  order_ ^= order_ << 13;
  order_ ^= order_ >> 7;
  order_ ^= order_ << 17;
  const size_t picked = (order_ >> 32) % running_.size();
  Running& running = running_[picked];
  const double noise = noise_[static_cast<size_t>(num_responses_ % kNumNoise)];

  auto& response = std::get<ResponseFinished>(response_);
  response.group = running.group;
  response.member = running.next_member++;
  response.num_bytes = 1 << 13;
  response.segments.clear();
  const PolicyVersion now = worker_versions_[static_cast<size_t>(running.worker.value())];
  for (PolicyVersion version = running.begun; version <= now; version = version.Next()) {
    response.segments.push_back({version, 100 + static_cast<int64_t>(1000 * noise)});
  }
  // A response that a sync interrupted has been rescored.
  response.prefix_score.reset();
  if (now > running.begun) response.prefix_score = 0.1 * noise;
  if (running.next_member == options_.group_size) {
    running = running_.back();
    running_.pop_back();
  }
  ++num_responses_;
  Send(response_);
}

double CoordinatorLoop::Run(double seconds) {
  const WallClock clock;
  const int64_t first = num_responses_;
  double elapsed = 0;
  while (elapsed < seconds || num_responses_ == first) {
    const int64_t until = num_responses_ + kResponsesPerClockRead;
    while (num_responses_ < until) Tick();
    elapsed = clock.Now().count();
  }
  return static_cast<double>(num_responses_ - first) / elapsed;
}

double BytesPerRunningGroup(int64_t num_groups, int64_t group_size) {
  const int64_t bytes_before = AllocatedBytes();
  Coordinator coordinator(OptionsOf(num_groups, group_size),
                          MakeAdmissionPolicy({}, num_groups, kSeed),
                          std::make_unique<ThresholdSupply>(num_groups));
  Keep(coordinator.Handle(WorkerJoined{WorkerId(0), num_groups}));
  return static_cast<double>(AllocatedBytes() - bytes_before) / static_cast<double>(num_groups);
}

}  // namespace pace
