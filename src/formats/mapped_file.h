// MappedFile: the bytes of a file, mapped read-only.
//
// The length is taken once, at Open. A file that another process shortens
// afterwards ends this one with SIGBUS when it touches the missing pages, as
// with every mapping; files of ours are replaced by rename and never shortened.
// An empty file is an empty span.
// Thread-safety: immutable after Open.
#ifndef PACE_FORMATS_MAPPED_FILE_H_
#define PACE_FORMATS_MAPPED_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "core/status.h"

namespace pace {

class MappedFile {
 public:
  // Regular files alone: a folder, a pipe or a device is an error.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Valid as long as this object or the one it was moved to; moving keeps the
  // address.
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace pace

#endif  // PACE_FORMATS_MAPPED_FILE_H_
