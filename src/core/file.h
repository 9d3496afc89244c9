// Files: every file that the product reads or writes goes through this interface.
//
//   PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
//   PACE_ASSIGN_OR_RETURN(auto file, Files::Default().OpenToWrite(path, WriteMode::kNew));
//   PACE_RETURN_IF_ERROR(file->Append(text));
//
// Nothing throws. An error is one line that names the file, what failed and why:
// "run/metrics.jsonl: cannot be written: No space left on device (is the disk full?)".
// Locks (record/run_lock.h), pipes and /proc are no files in this sense.
//
// Tests substitute fakes (core/fake_files.h): memory, a full disk, a torn write, a flush
// that fails.
// Thread-safety: Files may be called from any thread, a handle from one at a time.
#ifndef PACE_CORE_FILE_H_
#define PACE_CORE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace pace {

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Reads up to out.size() bytes; 0 only at the end.
  virtual Result<size_t> Read(std::span<char> out) = 0;
};

// Appends without a buffer: every call reaches the operating system.
class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes
  virtual Status Append(std::string_view bytes) = 0;
  // Returns once the disk holds what was appended. Devices that cannot flush count as flushed.
  virtual Status FlushToDisk() = 0;
  // The last call.
  virtual Status Close() = 0;
};

// The bytes of a file, mapped read-only; copies share the mapping. The length is taken
// once: a file that another process shortens later ends this one with SIGBUS, as with every
// mapping. Files of ours are replaced by rename and never shortened.
// Thread-safety: immutable.
class MappedFile {
 public:
  // Regular files only: a folder, a pipe or a device is an error.
  static Result<MappedFile> Open(const std::string& path);
  MappedFile(std::string path, std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : path_(std::move(path)), bytes_(bytes), owner_(std::move(owner)) {}

  // Valid as long as any copy.
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

enum class WriteMode {
  kReplace,  // creates the file, or empties it
  kNew,      // an existing file is an error
  kAppend,   // creates the file, or continues it
};

enum class FileKind { kMissing, kRegular, kFolder, kOther };

struct FileInfo {
  FileKind kind = FileKind::kMissing;
  int64_t num_bytes = 0;  // of a regular file
};

class Files {
 public:
  virtual ~Files() = default;

  // The operating system's files, or a test's (ScopedFiles).
  static Files& Default();

  virtual Result<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) = 0;
  // Errors of the handle call the file `name`; empty = `path`.
  virtual Result<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path, WriteMode mode,
                                                            const std::string& name = {}) = 0;
  virtual Result<MappedFile> Map(const std::string& path) = 0;
  // Cuts the file.
  virtual Status Truncate(const std::string& path, int64_t num_bytes) = 0;

  // Links are followed. What cannot be examined counts as missing.
  virtual FileInfo Stat(const std::string& path) = 0;
  bool Exists(const std::string& path) { return Stat(path).kind != FileKind::kMissing; }
  // Names without the folder, sorted.
  virtual Result<std::vector<std::string>> List(const std::string& folder) = 0;

  // Replaces a file, or an empty folder, called `to`.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // Swaps two names at one moment; not every file system can.
  virtual Status Exchange(const std::string& a, const std::string& b) = 0;
  // A file or an empty folder. Removing what is missing is no error.
  virtual Status Remove(const std::string& path) = 0;
  // The parent must exist; an existing folder is no error.
  virtual Status CreateFolder(const std::string& path) = 0;
  // A new, renamed or removed name survives a crash only after its folder is flushed.
  virtual Status FlushFolder(const std::string& folder) = 0;
};

Files& OsFiles();

// Replaces Files::Default() while it lives. For tests.
// REQUIRES: no other thread uses files when it is created or destroyed
class ScopedFiles {
 public:
  explicit ScopedFiles(Files& files);
  ~ScopedFiles();
  ScopedFiles(const ScopedFiles&) = delete;
  ScopedFiles& operator=(const ScopedFiles&) = delete;

 private:
  Files* const before_;
};

// The whole file; one of more than `max_bytes` is an error.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);
// The folder with its parents, where they are missing.
Status CreateFolders(const std::string& folder);
// A file, or a folder with everything in it.
Status RemoveTree(const std::string& path);
// The folder that holds `path`; "." for a bare name.
std::string FolderOf(const std::string& path);

}  // namespace pace

#endif  // PACE_CORE_FILE_H_
