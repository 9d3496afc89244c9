#include "cli/run_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace pace {

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

}  // namespace pace
