#include "launch/launch_files.h"

#include "config/settings.h"

namespace pace {
namespace {

constexpr const char* NameOf(Launcher launcher) {
  switch (launcher) {
    case Launcher::kSlurm:
      return "job.sbatch";
    case Launcher::kKubernetes:
      return "pace.yaml";
    case Launcher::kLocal:
      break;
  }
  return "run.sh";
}

}  // namespace

std::vector<LaunchFile> LaunchFiles(const LaunchPlan& plan, const std::string& token) {
  std::vector<LaunchFile> files(1);
  files[0].name = NameOf(plan.launcher);
  switch (plan.launcher) {
    case Launcher::kSlurm:
      files[0].text = SlurmScript(plan);
      break;
    case Launcher::kKubernetes:
      // The Secret is in it.
      files[0].text = KubernetesObjects(plan, token);
      files[0].is_secret = true;
      return files;
    case Launcher::kLocal:
      files[0].text = LocalScript(plan);
      break;
  }
  files[0].is_program = true;
  files.push_back({.name = "run.yaml", .text = ToYaml(plan.settings)});
  files.push_back({.name = "token", .text = token + "\n", .is_secret = true});
  return files;
}

std::string StartCommand(const LaunchPlan& plan, const std::string& folder) {
  const std::string file = ShellQuoted(Concat(folder, "/", NameOf(plan.launcher)));
  switch (plan.launcher) {
    case Launcher::kSlurm:
      return "sbatch " + file;
    case Launcher::kKubernetes:
      return "kubectl apply -f " + file;
    case Launcher::kLocal:
      break;
  }
  return file;
}

}  // namespace pace
