// AtomicFile writes a file so that readers see the old one or the whole new one.
//
// Bytes go to a file beside the target; Commit flushes it to the disk, renames
// it over the target and flushes the folder. Without a Commit that succeeded the
// target is untouched and the file beside it is removed. A process that is
// killed leaves at most a file whose name ends in ".partial-" and six
// characters.
// Thread-safety: none.
#ifndef PACE_FORMATS_ATOMIC_FILE_H_
#define PACE_FORMATS_ATOMIC_FILE_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/status.h"

namespace pace {

class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status Append(std::span<const std::byte> bytes);
  Status Append(std::string_view text);
  // The last call: what follows is an error.
  Status Commit();

 private:
  AtomicFile(std::string path, std::string aside, int descriptor)
      : path_(std::move(path)), aside_(std::move(aside)), descriptor_(descriptor) {}
  Status Failed(std::string_view what) const;
  void Close();

  std::string path_;
  std::string aside_;  // empty once renamed or moved from
  int descriptor_;     // open while aside_ is not empty
};

// All of a file at once.
Status WriteWholeFile(const std::string& path, std::string_view text);

}  // namespace pace

#endif  // PACE_FORMATS_ATOMIC_FILE_H_
