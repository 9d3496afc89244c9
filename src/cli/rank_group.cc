#include "cli/rank_group.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/open_policy.h"
#include "execution/learner_options.h"
#include "execution/trainer_state.h"
#include "ranks/byte_message.h"
#include "ranks/communicator.h"
#include "ranks/gpu_choice.h"
#include "ranks/gpu_ranks.h"
#include "record/build_info.h"
#include "terminal/interrupt.h"
#include "train/trainer.h"

namespace pace {
namespace {

constexpr int kErrorCode = 2;

std::string BuildName() {
  return Concat("pace ", PaceVersion(), " (", PaceCommit(), ")");
}

}  // namespace

RankGroup::RankGroup() = default;
RankGroup::~RankGroup() = default;

bool RankGroup::leads() const {
  return ranks_ == nullptr || ranks_->rank() == 0;
}

int64_t RankGroup::size() const {
  return ranks_ == nullptr ? 1 : ranks_->size();
}

void RankGroup::Exit(std::atomic<bool>& ended, const Status& status) {
  // The line is another thread's, which ends the process.
  if (ended.exchange(true)) std::this_thread::sleep_for(std::chrono::seconds(5));
  ExitCode(status);
  std::fflush(nullptr);
  std::_Exit(kErrorCode);
}

Result<std::unique_ptr<RankGroup>> RankGroup::Join() {
  std::unique_ptr<RankGroup> group(new RankGroup());
  PACE_ASSIGN_OR_RETURN(group->place_, ReadRankEnvironment(ProcessVariable));
  if (!group->place_.has_value()) return group;
  SelectGpu(*group->place_);
  RankOptions options;
  options.on_lost = [ended = group->ended_](const Status& status) { Exit(*ended, status); };
  PACE_ASSIGN_OR_RETURN(group->ranks_, ConnectRanks(*group->place_, options));
  PACE_RETURN_IF_ERROR(group->FindGpuShare());
  return group;
}

Status RankGroup::FindGpuShare() {
  PACE_ASSIGN_OR_RETURN(const std::vector<std::string> places, ranks_->GatherBytes(GpuPlace()));
  const std::string& own = places[static_cast<size_t>(ranks_->rank())];
  gpu_share_ = {.num_ranks = ranks_->size(),
                .ranks_on_gpu = std::count(places.begin(), places.end(), own),
                .has_rank_0 = places.front() == own};
  return Status::Ok();
}

Status RankGroup::ConnectGpusFor(const Settings& settings) {
  if (settings.policy.device != PolicyDevice::kCuda) return Status::Ok();
  return ConnectGpus(*ranks_, RankOptions());
}

Status RankGroup::Begin(const Settings& settings, const Policy& policy) {
  begun_ = true;
  if (ranks_ == nullptr) return Status::Ok();
  MessageWriter out;
  out.Text(BuildName());
  out.Text(ToYaml(settings));
  out.Number(ChecksumOf(policy.weights));
  std::string message = out.Take();
  PACE_RETURN_IF_ERROR(ranks_->AwaitBytes(message, 0));
  return ConnectGpusFor(settings);
}

Status RankGroup::Follow() {
  const std::string self = Concat("rank ", ranks_->rank(), " of ", ranks_->size());
  // The first signal is for rank 0, which got it too and ends the run.
  const StopSignals signals;
  std::string message;
  PACE_RETURN_IF_ERROR(ranks_->AwaitBytes(message, 0));
  if (message.empty()) return Unavailable(self, ": rank 0 refused the run; its line says why");
  MessageReader in(message);
  const std::string build(in.Text());
  const std::string yaml(in.Text());
  const auto checksum = in.Number<uint32_t>();
  if (!in.complete() || build != BuildName()) {
    return InvalidArgument(self, ": is ", BuildName(), ", but rank 0 is ", build,
                           " (start the same build everywhere)");
  }
  Settings settings;
  PACE_RETURN_IF_ERROR(ApplyYaml(settings, yaml, "settings of rank 0").At(self));
  Result<Policy> policy = OpenPolicy(settings.policy);
  if (!policy.ok()) return policy.status().At(self);
  if (ChecksumOf(policy->weights) != checksum) {
    return InvalidArgument(self, ": policy.model = ", settings.policy.model,
                           ": has other weights than on rank 0 (put the same files on every node)");
  }
  PACE_ASSIGN_OR_RETURN(const TrainerOptions options, TrainerOptionsOf(settings));
  PACE_RETURN_IF_ERROR(PrepareGpu(settings, policy->config, gpu_share_).At(self));
  PACE_RETURN_IF_ERROR(ConnectGpusFor(settings));
  return FollowTrainer(policy->config, policy->weights, options, *ranks_);
}

Result<int> RankGroup::End(const Result<int>& code) {
  if (ranks_ == nullptr || code.ok()) return code;
  if (leads() && !begun_) {
    std::string refused;
    static_cast<void>(ranks_->AwaitBytes(refused, 0));
  }
  Exit(*ended_, code.status());
}

}  // namespace pace
