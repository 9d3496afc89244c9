#include "formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace pace {
namespace {

Result<std::span<const std::byte>> MapDescriptor(int descriptor) {
  struct stat facts{};
  if (::fstat(descriptor, &facts) != 0) return Unavailable(std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) return InvalidArgument("must be a regular file");
  const auto size = static_cast<size_t>(facts.st_size);
  if (size == 0) return std::span<const std::byte>();
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) return Unavailable("cannot be mapped: ", std::strerror(errno));
  return std::span(static_cast<const std::byte*>(address), size);
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const std::string reason = std::strerror(errno);
    if (errno == ENOENT) return NotFound(path, ": ", reason);
    return Unavailable(path, ": cannot be opened: ", reason);
  }
  const auto bytes = MapDescriptor(descriptor);
  ::close(descriptor);
  if (!bytes.ok()) return bytes.status().At(path);
  return MappedFile(path, *bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace pace
