// pace launch
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/command.h"
#include "config/methods.h"
#include "config/settings.h"
#include "core/atomic_file.h"
#include "core/file.h"
#include "core/file_descriptor.h"
#include "launch/launch_files.h"
#include "launch/launch_plan.h"
#include "launch/model_folder.h"

namespace pace {
namespace {

struct LaunchArguments {
  std::string settings;
  std::vector<std::string> overrides;
  std::string method;
  std::string out;
};

constexpr size_t kTokenDigits = 48;

std::string RandomToken() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device device;
  std::string token;
  for (size_t i = 0; i < kTokenDigits; ++i) token += kDigits[device() % kDigits.size()];
  return token;
}

// Where they are written. Refused: a folder with files of an earlier launch, which may run.
Result<std::string> NewFolder(const std::string& out) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(out, error).lexically_normal();
  if (error) return Unavailable("--out ", out, ": ", error.message());
  if (Files::Default().Exists(folder) && !std::filesystem::is_empty(folder, error)) {
    return InvalidArgument("--out ", out, ": must be a new or an empty folder");
  }
  std::string text = folder.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Status WriteLaunchFile(const std::string& path, const LaunchFile& file) {
  // The file is created with a restrictive mode, so that no other user can read the secret.
  if (file.is_secret) {
    const mode_t before = ::umask(0077);
    const Status status = WriteFileAtomically(path, file.text);
    ::umask(before);
    return status;
  }
  PACE_RETURN_IF_ERROR(WriteFileAtomically(path, file.text));
  if (file.is_program && ::chmod(path.c_str(), 0755) != 0) return ErrnoStatus(path);
  return Status::Ok();
}

Status RunLaunch(const LaunchArguments& arguments, Launcher launcher) {
  PACE_ASSIGN_OR_RETURN(Settings settings, LoadSettings(arguments.settings, arguments.overrides));
  if (!arguments.method.empty()) {
    PACE_ASSIGN_OR_RETURN(settings, ApplyMethod(settings, arguments.method, "--method"));
  }
  PACE_RETURN_IF_ERROR(CheckModelFolder(settings));
  PACE_ASSIGN_OR_RETURN(const std::string folder, NewFolder(arguments.out));
  const std::string mounted = settings.launch.folder.empty() ? "/pace" : settings.launch.folder;
  PACE_ASSIGN_OR_RETURN(
      const LaunchPlan plan,
      PlanLaunch(settings, launcher, launcher == Launcher::kKubernetes ? mounted : folder));
  PACE_RETURN_IF_ERROR(CreateFolders(folder));
  for (const LaunchFile& file : LaunchFiles(plan, RandomToken())) {
    PACE_RETURN_IF_ERROR(WriteLaunchFile(Concat(folder, "/", file.name), file));
  }
  for (const std::string& line : DescribePlan(plan)) std::printf("%s\n", line.c_str());
  std::printf("start with  %s\n", StartCommand(plan, folder).c_str());
  return std::fflush(stdout) == 0 ? Status::Ok() : Unavailable("stdout: cannot be written");
}

Status RunSlurm(const LaunchArguments& arguments) {
  return RunLaunch(arguments, Launcher::kSlurm);
}
Status RunKubernetes(const LaunchArguments& arguments) {
  return RunLaunch(arguments, Launcher::kKubernetes);
}
Status RunLocal(const LaunchArguments& arguments) {
  return RunLaunch(arguments, Launcher::kLocal);
}

void AddLaunchFlags(CLI::App& app, LaunchArguments& arguments) {
  app.add_option("settings", arguments.settings, kSettingsHelp)->required();
  app.add_option("overrides", arguments.overrides, kOverridesHelp);
  app.add_option("--method", arguments.method, "A method: " + MethodNames());
  app.add_option("--out", arguments.out, "New folder for the files")->required();
}

}  // namespace

void AddLaunch(const CommandLine& line) {
  const CommandLine group =
      line.AddGroup("launch", "Write the files that start a run on several machines",
                    "pace launch slurm math-8b --out jobs/math-8b");
  group.Add<LaunchArguments>(
      "slurm", "A batch script with a step for each engine and one for the trainer",
      "pace launch slurm math-8b launch.sbatch=[--partition=gpu] --out /shared/math-8b\n"
      "  sbatch /shared/math-8b/job.sbatch",
      AddLaunchFlags, RunSlurm);
  group.Add<LaunchArguments>(
      "kubernetes", "A StatefulSet of engines and a Job of trainer ranks",
      "pace launch kubernetes math-8b launch.image=my/pace launch.volume=shared --out math-8b\n"
      "  kubectl apply -f math-8b/pace.yaml",
      AddLaunchFlags, RunKubernetes);
  group.Add<LaunchArguments>("local", "A script that starts engines and trainer on this machine",
                             "pace launch local math-4b --out math-4b\n"
                             "  math-4b/run.sh",
                             AddLaunchFlags, RunLocal);
}

}  // namespace pace
