#include "record/run_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace pace {

std::string FreeRunDirectory(const std::string& settings) {
  const std::string base = "runs/" + std::filesystem::path(settings).stem().string();
  std::string candidate = base;
  std::error_code ignored;
  for (int number = 2; std::filesystem::exists(candidate, ignored); ++number) {
    candidate = Concat(base, "-", number);
  }
  return candidate;
}

Status CheckCanHold(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path nearest = fs::absolute(folder, error).lexically_normal();
  if (error) return Unavailable(folder, ": ", error.message());
  while (true) {
    const fs::file_status status = fs::status(nearest, error);
    if (fs::exists(status)) {
      if (!fs::is_directory(status)) {
        return InvalidArgument(folder, ": cannot be made: ", nearest.string(),
                               " is not a directory");
      }
      break;
    }
    if (error && error != std::errc::no_such_file_or_directory &&
        error != std::errc::not_a_directory) {
      return Unavailable(folder, ": cannot be made: ", error.message());
    }
    if (nearest == nearest.parent_path()) break;
    nearest = nearest.parent_path();
  }
  if (::access(nearest.c_str(), W_OK | X_OK) == 0) return Status::Ok();
  return Unavailable(folder, ": cannot be made: ", nearest.string(), ": ", std::strerror(errno));
}

Status CheckNewRunDirectory(const std::string& folder) {
  PACE_RETURN_IF_ERROR(CheckCanHold(folder));
  std::error_code ignored;
  if (std::filesystem::exists(folder + "/manifest.json", ignored)) {
    return InvalidArgument(folder, ": already holds a run (go on with pace train --resume ", folder,
                           ", or name another directory)");
  }
  return Status::Ok();
}

Manifest ManifestOf(const Settings& settings, const std::string& name, const std::string& driver) {
  const bool on_gpu = settings.policy.device == PolicyDevice::kCuda;
  return {.name = name,
          .driver = driver,
          .device = on_gpu ? "cuda" : "cpu",
          .threads = settings.train.num_threads + settings.engine.count * settings.engine.threads,
          .determinism = on_gpu ? "none" : (driver == "lab" ? "bitwise" : "responses"),
          .tensorboard = true,
          .watchable = true};
}

}  // namespace pace
