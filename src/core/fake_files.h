// Files for tests: in memory, and on a disk that fails.
//
//   FaultyFiles disk(OsFiles(), {.kind = DiskFault::kTornWrite, .at = 17});
//   const ScopedFiles scoped(disk);  // of what is written now, write 17 is cut in half
//
// Thread-safety: as Files.
#ifndef PACE_CORE_FAKE_FILES_H_
#define PACE_CORE_FAKE_FILES_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/mutex.h"

namespace pace {

// Holds files and folders in memory. Handles stay valid when their file is renamed or
// removed, as on a real disk.
class MemoryFiles final : public Files {
 public:
  Result<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path, WriteMode mode,
                                                    const std::string& name) override;
  Result<MappedFile> Map(const std::string& path) override;
  Status Truncate(const std::string& path, int64_t num_bytes) override;
  FileInfo Stat(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& folder) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Exchange(const std::string& a, const std::string& b) override;
  Status Remove(const std::string& path) override;
  Status CreateFolder(const std::string& path) override;
  Status FlushFolder(const std::string& folder) override;

  // Calls of Map: a mapped file counts as memory while it is read.
  int64_t num_maps();

 private:
  using Content = std::shared_ptr<std::string>;  // null = a folder
  using Entries = std::map<std::string, Content>;

  // The content of a regular file.
  Result<Content> Find(const std::string& path) PACE_REQUIRES(mutex_);
  // Takes `path` and everything in it out.
  Entries Take(const std::string& path) PACE_REQUIRES(mutex_);
  bool HasParent(const std::string& path) PACE_REQUIRES(mutex_);

  Mutex mutex_;
  Entries entries_ PACE_GUARDED_BY(mutex_) = {{".", nullptr}, {"/", nullptr}};
  int64_t num_maps_ PACE_GUARDED_BY(mutex_) = 0;
};

struct DiskFault {
  enum Kind {
    kFullDisk,    // no write succeeds from the chosen one on
    kTornWrite,   // the chosen write stores half of its bytes and fails
    kFailedFlush  // the chosen flush, of a file or a folder, fails
  };
  Kind kind = kFullDisk;
  int64_t at = std::numeric_limits<int64_t>::max();  // write or flush, from 0
  // With kFullDisk: how many bytes the disk has room for.
  int64_t max_bytes = std::numeric_limits<int64_t>::max();
};

// Passes everything on to `files` except the fault. Appending, renaming, and creating a file
// or a folder are the writes.
class FaultyFiles final : public Files {
 public:
  FaultyFiles(Files& files, const DiskFault& fault) : files_(files), fault_(fault) {}

  int64_t num_writes() const;
  int64_t num_flushes() const;
  // What the fault was about; empty before it happened.
  std::string failed_path() const;

  Result<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) override {
    return files_.OpenToRead(path);
  }
  Result<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path, WriteMode mode,
                                                    const std::string& name) override;
  Result<MappedFile> Map(const std::string& path) override { return files_.Map(path); }
  Status Truncate(const std::string& path, int64_t num_bytes) override {
    return files_.Truncate(path, num_bytes);
  }
  FileInfo Stat(const std::string& path) override { return files_.Stat(path); }
  Result<std::vector<std::string>> List(const std::string& folder) override {
    return files_.List(folder);
  }
  Status Rename(const std::string& from, const std::string& to) override;
  Status Exchange(const std::string& a, const std::string& b) override;
  Status Remove(const std::string& path) override { return files_.Remove(path); }
  Status CreateFolder(const std::string& path) override;
  Status FlushFolder(const std::string& folder) override;

 private:
  class Handle;

  // Counts one write, of so many bytes. Ok, or the fault; then `stored` bytes are kept.
  Status CountWrite(const std::string& path, size_t num_bytes, size_t& stored);
  Status CountWrite(const std::string& path);
  Status CountFlush(const std::string& path);

  Files& files_;
  const DiskFault fault_;
  mutable Mutex mutex_;
  int64_t num_writes_ PACE_GUARDED_BY(mutex_) = 0;
  int64_t num_flushes_ PACE_GUARDED_BY(mutex_) = 0;
  int64_t num_bytes_ PACE_GUARDED_BY(mutex_) = 0;
  std::string failed_path_ PACE_GUARDED_BY(mutex_);
};

}  // namespace pace

#endif  // PACE_CORE_FAKE_FILES_H_
