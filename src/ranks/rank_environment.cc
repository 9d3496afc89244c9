#include "ranks/rank_environment.h"

#include <charconv>
#include <cstdlib>

#include "core/printable.h"

namespace pace {
namespace {

constexpr int64_t kMaxRanks = 4096;
constexpr int64_t kMaxPort = 65535;
// Of srun without MASTER_PORT: jobs that share a node get different ports.
constexpr int64_t kFirstPort = 20000;
constexpr int64_t kNumPorts = 20000;

// A number between two bounds; none where the variable is not set.
Result<std::optional<int64_t>> ReadNumber(const VariableReader& read, const char* name,
                                          int64_t least, int64_t most) {
  const std::optional<std::string> text = read(name);
  if (!text.has_value()) return std::optional<int64_t>();
  int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < least || number > most) {
    return InvalidArgument(name, " = ", Printable(*text), ": must be a number from ", least, " to ",
                           most, " (the launcher sets it)");
  }
  return std::optional<int64_t>(number);
}

// Rank and size, where both variables are set; size 0: they are not.
Status ReadPlace(const VariableReader& read, const char* rank_name, const char* size_name,
                 RankEnvironment& out) {
  out.size = 0;
  PACE_ASSIGN_OR_RETURN(const std::optional<int64_t> size,
                        ReadNumber(read, size_name, 1, kMaxRanks));
  if (!size.has_value()) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(const std::optional<int64_t> rank,
                        ReadNumber(read, rank_name, 0, *size - 1));
  if (!rank.has_value()) {
    if (*size == 1) return Status::Ok();
    return InvalidArgument(size_name, " = ", *size, ": ", rank_name,
                           " is not set (unset both to train in one process)");
  }
  out.size = *size;
  out.rank = *rank;
  return Status::Ok();
}

Status ReadLocalRank(const VariableReader& read, const char* name, RankEnvironment& out) {
  PACE_ASSIGN_OR_RETURN(const std::optional<int64_t> local,
                        ReadNumber(read, name, 0, kMaxRanks - 1));
  out.local_rank = local.value_or(0);
  return Status::Ok();
}

Status ReadMeetingPoint(const VariableReader& read, RankEnvironment& out) {
  out.address = read("MASTER_ADDR").value_or(out.address);
  PACE_ASSIGN_OR_RETURN(const std::optional<int64_t> port,
                        ReadNumber(read, "MASTER_PORT", 1, kMaxPort));
  out.port = port.value_or(out.port);
  if (out.address.empty()) {
    return InvalidArgument("MASTER_ADDR: is not set; the ", out.size, " ranks of ", out.launcher,
                           " need the host of rank 0");
  }
  if (out.port == 0) {
    return InvalidArgument("MASTER_PORT: is not set; the ", out.size, " ranks of ", out.launcher,
                           " need a free port on the host of rank 0");
  }
  return Status::Ok();
}

Status ReadTorchrun(const VariableReader& read, RankEnvironment& out) {
  out.launcher = "torchrun";
  out.agent_store = read("TORCHELASTIC_USE_AGENT_STORE") == "True";
  PACE_ASSIGN_OR_RETURN(const std::optional<int64_t> restarts,
                        ReadNumber(read, "TORCHELASTIC_RESTART_COUNT", 0, INT64_MAX));
  PACE_ASSIGN_OR_RETURN(const std::optional<int64_t> most,
                        ReadNumber(read, "TORCHELASTIC_MAX_RESTARTS", 0, INT64_MAX));
  out.num_restarts = restarts.value_or(0);
  out.may_be_restarted = most.value_or(0) > 0;
  PACE_RETURN_IF_ERROR(ReadLocalRank(read, "LOCAL_RANK", out));
  return ReadMeetingPoint(read, out);
}

Status ReadSlurm(const VariableReader& read, RankEnvironment& out) {
  out.launcher = "srun";
  PACE_RETURN_IF_ERROR(ReadLocalRank(read, "SLURM_LOCALID", out));
  out.address = FirstHost(read("SLURM_STEP_NODELIST").value_or(""));
  PACE_ASSIGN_OR_RETURN(const std::optional<int64_t> job,
                        ReadNumber(read, "SLURM_JOB_ID", 0, INT64_MAX / 2));
  PACE_ASSIGN_OR_RETURN(const std::optional<int64_t> step,
                        ReadNumber(read, "SLURM_STEP_ID", 0, INT64_MAX / 2));
  if (job.has_value()) out.port = kFirstPort + (*job + step.value_or(0)) % kNumPorts;
  PACE_ASSIGN_OR_RETURN(const std::optional<int64_t> restarts,
                        ReadNumber(read, "SLURM_RESTART_COUNT", 0, INT64_MAX));
  out.num_restarts = restarts.value_or(0);
  return ReadMeetingPoint(read, out);
}

struct MpiNames {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

Status ReadMpi(const VariableReader& read, const MpiNames& names, RankEnvironment& out) {
  out.launcher = "mpirun";
  PACE_RETURN_IF_ERROR(ReadLocalRank(read, names.local_rank, out));
  const std::optional<std::string> local = read(names.local_size);
  if (local == std::to_string(out.size)) out.address = "127.0.0.1";
  return ReadMeetingPoint(read, out);
}

}  // namespace

std::optional<std::string> ProcessVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string FirstHost(const std::string& list) {
  std::string host;
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == ',') break;
    if (c != '[') {
      host += c;
      continue;
    }
    const size_t close = list.find(']', i);
    if (close == std::string::npos) return "";
    const std::string range = list.substr(i + 1, close - i - 1);
    host += range.substr(0, range.find_first_of(",-"));
    i = close;
  }
  return host;
}

Result<std::optional<RankEnvironment>> ReadRankEnvironment(const VariableReader& read) {
  RankEnvironment found;
  PACE_RETURN_IF_ERROR(ReadPlace(read, "RANK", "WORLD_SIZE", found));
  if (found.size > 0) {
    if (found.size == 1) return std::optional<RankEnvironment>();
    PACE_RETURN_IF_ERROR(ReadTorchrun(read, found));
    return std::optional(found);
  }
  // SLURM_NTASKS is also there in a batch script, which is not one of the tasks.
  if (read("SLURM_PROCID").has_value()) {
    PACE_RETURN_IF_ERROR(ReadPlace(read, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", found));
    if (found.size > 1) {
      PACE_RETURN_IF_ERROR(ReadSlurm(read, found));
      return std::optional(found);
    }
  }
  for (const MpiNames& names :
       {MpiNames{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                 "OMPI_COMM_WORLD_LOCAL_SIZE"},
        MpiNames{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}}) {
    if (!read(names.rank).has_value()) continue;
    PACE_RETURN_IF_ERROR(ReadPlace(read, names.rank, names.size, found));
    if (found.size < 2) continue;
    PACE_RETURN_IF_ERROR(ReadMpi(read, names, found));
    return std::optional(found);
  }
  return std::optional<RankEnvironment>();
}

}  // namespace pace
