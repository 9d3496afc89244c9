// RankEnvironment: which process of how many this is, as its launcher says.
//
//   Result<std::optional<RankEnvironment>> ranks = ReadRankEnvironment(ProcessVariable);
//   const bool one_of_several = ranks.ok() && ranks->has_value();
//
// The first launcher that is recognised counts:
//
//   torchrun, Kubernetes  RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; under
//                         TORCHELASTIC_USE_AGENT_STORE the agent holds the store
//   srun                  SLURM_PROCID, SLURM_STEP_NUM_TASKS; the first node of the step, and a
//                         port that follows from the job, unless MASTER_ADDR and MASTER_PORT say
//   mpirun                OMPI_COMM_WORLD_RANK and _SIZE, or PMI_RANK and PMI_SIZE
//
// The rank's number on its machine, from 0, is in LOCAL_RANK, SLURM_LOCALID,
// OMPI_COMM_WORLD_LOCAL_RANK or MPI_LOCALRANKID; where the variable is not set, it is 0.
// Thread-safety: functions of their arguments.
#ifndef PACE_RANKS_RANK_ENVIRONMENT_H_
#define PACE_RANKS_RANK_ENVIRONMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/status.h"

namespace pace {

struct RankEnvironment {
  std::string launcher = {};  // torchrun, srun or mpirun
  int64_t rank = 0;
  int64_t size = 1;  // at least 2
  int64_t local_rank = 0;
  // Where the ranks meet.
  std::string address = {};
  int64_t port = 0;
  bool agent_store = false;  // torchrun's agent listens there; otherwise rank 0 does
  int64_t num_restarts = 0;  // of the whole group before this start
  bool may_be_restarted = false;

  friend bool operator==(const RankEnvironment&, const RankEnvironment&) = default;
};

// The value of a variable; none where it is not set.
using VariableReader = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> ProcessVariable(const char* name);

// None: this process is alone. An error names the variable.
Result<std::optional<RankEnvironment>> ReadRankEnvironment(const VariableReader& read);

// The first host of Slurm's compressed list: n01 of "n[01-03,7]x" is n01x. Empty for an empty or
// unclosed list.
std::string FirstHost(const std::string& list);

}  // namespace pace

#endif  // PACE_RANKS_RANK_ENVIRONMENT_H_
