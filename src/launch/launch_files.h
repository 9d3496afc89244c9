// The files that start a LaunchPlan: one script, or one file of Kubernetes objects, with the
// settings of the run and the token that engines ask for beside it.
//
//   slurm        job.sbatch   an srun step for each engine and one for all trainer ranks
//   kubernetes   pace.yaml    Secret, ConfigMap, Services, StatefulSet (engines), Job (trainer)
//   local        run.sh       processes of this machine
//
// Thread-safety: pure functions.
#ifndef PACE_LAUNCH_LAUNCH_FILES_H_
#define PACE_LAUNCH_LAUNCH_FILES_H_

#include <string>
#include <vector>

#include "launch/launch_plan.h"

namespace pace {

struct LaunchFile {
  std::string name = {};  // in the plan's folder
  std::string text = {};
  bool is_secret = false;   // for its owner alone
  bool is_program = false;  // may be executed
};

// The first one is what a person starts.
std::vector<LaunchFile> LaunchFiles(const LaunchPlan& plan, const std::string& token);

// The command that starts them, for a person. `folder` is where they were written.
std::string StartCommand(const LaunchPlan& plan, const std::string& folder);

// One for each launcher: the text of the first file.
std::string SlurmScript(const LaunchPlan& plan);
std::string LocalScript(const LaunchPlan& plan);
std::string KubernetesObjects(const LaunchPlan& plan, const std::string& token);

}  // namespace pace

#endif  // PACE_LAUNCH_LAUNCH_FILES_H_
