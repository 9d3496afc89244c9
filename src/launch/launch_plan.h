// LaunchPlan: a run on several machines, as settings and commands, before it is written for a
// particular launcher (launch_files.h).
//
//   PACE_ASSIGN_OR_RETURN(const LaunchPlan plan,
//                         PlanLaunch(settings, Launcher::kSlurm, "/shared/my-run"));
//   for (const LaunchFile& file : LaunchFiles(plan, token)) ...
//
// Number and place of engines and ranks come from the section `cluster`, which `pace sim` reads
// too; what a simulated engine does at a time (cluster.slots, memory_share, tensor_parallel)
// becomes arguments of the real one. Nothing is started and nothing is read but the arguments.
//
// Thread-safety: pure functions.
#ifndef PACE_LAUNCH_LAUNCH_PLAN_H_
#define PACE_LAUNCH_LAUNCH_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/memory_plan.h"
#include "cluster/placement.h"
#include "config/settings.h"
#include "core/status.h"

namespace pace {

enum class Launcher { kSlurm, kKubernetes, kLocal };

struct LaunchPlan {
  Launcher launcher = Launcher::kLocal;
  Settings settings = {};  // of the run, as run.yaml has them
  Placement placement = {};
  ShardMode shard = ShardMode::kNone;
  std::string folder = {};              // of the files, as every machine sees it
  std::vector<std::string> notes = {};  // settings that the plan changed, a line each

  bool OnGpus() const { return settings.policy.device == PolicyDevice::kCuda; }
  int64_t NumRanks() const { return static_cast<int64_t>(placement.ranks.size()); }
  int64_t RanksPerNode() const;  // of the nodes with ranks, the most
  // Where engine i listens. Kubernetes gives every engine an address of its own.
  int64_t PortOf(size_t engine) const;
};

// Refused in one line: what no launcher starts, what does not fit the GPUs' memory, names and ports
// that cannot be, a run on one machine that needs more (local).
Result<LaunchPlan> PlanLaunch(const Settings& settings, Launcher launcher,
                              const std::string& folder);

// One argument of a command: text that is quoted, or an expression of the shell that is not.
struct Word {
  std::string text = {};
  bool is_expression = false;
};
// As a POSIX shell reads them.
std::string ShellLine(const std::vector<Word>& words);
std::string ShellQuoted(std::string_view text);

// Variables and arguments of one engine. `port` is text, because Kubernetes and Slurm know it
// differently; `token` an expression that gives the token, where a program takes it no other way.
struct EngineCommand {
  std::vector<std::string> environment = {};  // NAME=value
  std::string token_variable = {};            // that must hold the token
  std::vector<Word> words = {};
};
EngineCommand EngineCommandOf(const LaunchPlan& plan, const std::string& host, int64_t port,
                              const std::string& token_expression);

// `pace train` of one rank: of a new run, or of one that goes on. `urls` is engine.urls, or empty
// where run.yaml has them.
std::vector<Word> TrainWords(const LaunchPlan& plan, const std::string& settings_file,
                             const std::string& run, bool resumes, const std::string& urls);

// What the plan starts, and what that needs, a line each.
std::vector<std::string> DescribePlan(const LaunchPlan& plan);

}  // namespace pace

#endif  // PACE_LAUNCH_LAUNCH_PLAN_H_
