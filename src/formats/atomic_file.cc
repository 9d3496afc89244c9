#include "formats/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace pace {
namespace {

// A rename is on the disk only once its folder is.
bool FlushFolder(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool flushed = ::fsync(descriptor) == 0;
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  return flushed;
}

// mkstemp makes a file that its owner alone may read; a new file is what the
// process's mask says. Reading the mask means setting it, so we ask the kernel.
mode_t NewFileMode() {
  std::FILE* const status = std::fopen("/proc/self/status", "re");
  unsigned mask = 022;
  if (status != nullptr) {
    char line[256];
    while (std::fgets(line, sizeof(line), status) != nullptr) {
      if (std::sscanf(line, "Umask: %o", &mask) == 1) break;
    }
    std::fclose(status);
  }
  return static_cast<mode_t>(0666u & ~mask);
}

}  // namespace

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  if (std::filesystem::path(path).filename().empty()) {
    return InvalidArgument(path, ": must name a file");
  }
  std::string aside = path + ".partial-XXXXXX";
  const int descriptor = ::mkostemp(aside.data(), O_CLOEXEC);
  if (descriptor < 0) return Unavailable(path, ": cannot be created: ", std::strerror(errno));
  AtomicFile file(path, aside, descriptor);
  if (::fchmod(descriptor, NewFileMode()) != 0) return file.Failed("cannot be created");
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      aside_(std::exchange(other.aside_, std::string())),
      descriptor_(other.descriptor_) {}

AtomicFile::~AtomicFile() {
  Close();
}

void AtomicFile::Close() {
  if (aside_.empty()) return;
  ::close(descriptor_);
  ::unlink(aside_.c_str());
  aside_.clear();
}

Status AtomicFile::Failed(std::string_view what) const {
  return Unavailable(path_, ": ", what, ": ", std::strerror(errno));
}

Status AtomicFile::Append(std::span<const std::byte> bytes) {
  if (aside_.empty()) return InvalidArgument(path_, ": is already committed");
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("cannot be written");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return Status::Ok();
}

Status AtomicFile::Append(std::string_view text) {
  return Append(std::as_bytes(std::span(text)));
}

Status AtomicFile::Commit() {
  if (aside_.empty()) return InvalidArgument(path_, ": is already committed");
  Status status;
  if (::fsync(descriptor_) != 0) {
    status = Failed("cannot be flushed");
  } else if (::rename(aside_.c_str(), path_.c_str()) != 0) {
    status = Failed("cannot be replaced");
  } else {
    ::close(descriptor_);
    aside_.clear();
    if (!FlushFolder(path_)) status = Failed("its folder cannot be flushed");
  }
  Close();
  return status;
}

Status WriteWholeFile(const std::string& path, std::string_view text) {
  PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  PACE_RETURN_IF_ERROR(file.Append(text));
  return file.Commit();
}

}  // namespace pace
