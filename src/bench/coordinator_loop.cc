#include "bench/coordinator_loop.h"

#include <limits>
#include <memory>
#include <utility>
#include <variant>

#include "bench/machine.h"
#include "bench/measurement.h"
#include "control/supply_policies.h"
#include "core/clock.h"
#include "core/random.h"

namespace pace {
namespace {

constexpr int64_t kNumNoise = 4096;
constexpr uint64_t kSeed = 1;
constexpr int64_t kNumWarmUpSteps = 100;
// Produced while one batch is trained on.
constexpr double kBatchesPerStep = 1.1;
constexpr double kBatchesPerStepWhileFilling = 4;
constexpr int64_t kResponsesPerClockRead = 1024;

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
