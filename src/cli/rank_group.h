// RankGroup: this process among the ranks that torchrun, srun or mpirun started `pace train` on.
//
//   PACE_ASSIGN_OR_RETURN(const std::unique_ptr<RankGroup> group, RankGroup::Join());
//   if (!group->leads()) return group->End(group->Follow()).status();
//   return group->End(Lead(*group)).status();  // Begin, then the run with group->ranks()
//
// Rank 0 leads: it alone plans, writes and prints. The others take the settings from it and train.
// Each rank uses one GPU of its machine (ranks/gpu_choice.h) where policy.device = cuda; Begin and
// Follow then connect the GPUs. Join comes before anything that initialises CUDA.
// When a rank is lost, every other one prints one line and ends with exit code 2, whatever it does
// at that time.
// Thread-safety: none.
#ifndef PACE_CLI_RANK_GROUP_H_
#define PACE_CLI_RANK_GROUP_H_

#include <atomic>
#include <memory>
#include <optional>

#include "config/settings.h"
#include "core/status.h"
#include "execution/gpu_plan.h"
#include "execution/policy.h"
#include "ranks/rank_environment.h"

namespace pace {

class Communicator;

class RankGroup {
 public:
  // Without a launcher: a group of one, which has no communicator.
  static Result<std::unique_ptr<RankGroup>> Join();
  ~RankGroup();

  bool leads() const;
  Communicator* ranks() const { return ranks_.get(); }
  int64_t size() const;
  const GpuShare& gpu_share() const { return gpu_share_; }
  // Whether the launcher has started the group before, or would do so after a failure.
  bool restarted() const { return place_.has_value() && place_->num_restarts > 0; }
  bool may_be_restarted() const { return place_.has_value() && place_->may_be_restarted; }

  // Rank 0: the others start with these.
  Status Begin(const Settings& settings, const Policy& policy);
  // The others: until rank 0 has finished the run.
  Status Follow();
  // The command's result. After an error on several ranks it prints and ends the process: the
  // others notice at once.
  Result<int> End(const Result<int>& code);
  Result<int> End(const Status& status) { return End(status.ok() ? Result<int>(0) : status); }

 private:
  RankGroup();
  Status FindGpuShare();
  Status ConnectGpusFor(const Settings& settings);
  // Prints one line and ends the process, unless that has begun already.
  [[noreturn]] static void Exit(std::atomic<bool>& ended, const Status& status);

  std::optional<RankEnvironment> place_ = {};
  GpuShare gpu_share_ = {};
  bool begun_ = false;
  const std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<Communicator> ranks_;
};

}  // namespace pace

#endif  // PACE_CLI_RANK_GROUP_H_
