#include "formats/atomic_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace pace {
namespace {

namespace fs = std::filesystem;

Status CheckTarget(const fs::path& target) {
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (!fs::exists(status)) return Status::Ok();
  if (!fs::is_directory(status)) {
    return InvalidArgument(target.string(), ": is there already, and is not a folder");
  }
  const bool empty = fs::is_empty(target, error);
  if (error) return Unavailable(target.string(), ": cannot be listed: ", error.message());
  if (!empty) return InvalidArgument(target.string(), ": is there already, and is not empty");
  return Status::Ok();
}

// Those of the parents that were not there, outermost first.
Result<std::vector<fs::path>> MakeParents(const fs::path& target) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = target.parent_path(); !at.empty() && !fs::exists(at, error);
       at = at.parent_path()) {
    missing.push_back(at);
  }
  std::reverse(missing.begin(), missing.end());
  for (size_t i = 0; i < missing.size(); ++i) {
    if (::mkdir(missing[i].c_str(), 0777) == 0) continue;
    const int reason = errno;
    while (i-- > 0) ::rmdir(missing[i].c_str());
    return Unavailable(target.string(), ": cannot be created: ", std::strerror(reason));
  }
  return missing;
}

bool Flush(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool flushed = ::fsync(descriptor) == 0;
  ::close(descriptor);
  return flushed;
}

}  // namespace

Result<AtomicFolder> AtomicFolder::Create(const std::string& target) {
  fs::path path = fs::path(target).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();  // a slash at the end
  if (path.filename().empty() || path == "." || path == "..") {
    return InvalidArgument(target, ": must name a folder");
  }
  PACE_RETURN_IF_ERROR(CheckTarget(path));
  PACE_ASSIGN_OR_RETURN(std::vector<fs::path> parents, MakeParents(path));
  AtomicFolder folder;
  folder.parents_ = std::move(parents);
  folder.target_ = path;
  const auto process = static_cast<int64_t>(::getpid());
  for (int64_t attempt = 0;; ++attempt) {
    const fs::path aside = path.string() + Concat(".partial-", process, "-", attempt);
    if (::mkdir(aside.c_str(), 0777) == 0) {
      folder.aside_ = aside;
      return folder;
    }
    if (errno != EEXIST) {
      return Unavailable(path.string(), ": cannot be created: ", std::strerror(errno));
    }
  }
}

AtomicFolder::AtomicFolder(AtomicFolder&& other) noexcept
    : target_(std::move(other.target_)),
      aside_(std::exchange(other.aside_, fs::path())),
      parents_(std::exchange(other.parents_, {})) {}

AtomicFolder::~AtomicFolder() {
  std::error_code error;
  if (!aside_.empty()) fs::remove_all(aside_, error);
  // Only those that are empty go.
  for (auto parent = parents_.rbegin(); parent != parents_.rend(); ++parent) {
    ::rmdir(parent->c_str());
  }
}

Status AtomicFolder::Commit() {
  if (aside_.empty()) return InvalidArgument(target_.string(), ": is already committed");
  Flush(aside_);
  // An empty folder gives way; anything that came in the meantime does not.
  if (::rename(aside_.c_str(), target_.c_str()) != 0) {
    return Unavailable(target_.string(), ": cannot be replaced: ", std::strerror(errno));
  }
  aside_.clear();
  parents_.clear();
  const fs::path parent = target_.parent_path();
  if (!Flush(parent.empty() ? fs::path(".") : parent)) {
    return Unavailable(target_.string(), ": its folder cannot be flushed: ", std::strerror(errno));
  }
  return Status::Ok();
}

}  // namespace pace
