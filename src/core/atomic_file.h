// AtomicFile and AtomicFolder: a file or a folder that appears whole or not at all.
//
//   PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
//   PACE_RETURN_IF_ERROR(file.Append(text));
//   return file.Commit();
//
// Bytes go to a name beside the target that holds ".partial-"; Commit flushes, renames it
// over the target and flushes the parent folder. Without a successful Commit the target is
// untouched and what was written is removed. A killed process leaves at most the partial
// file or folder. A file that is a device or a pipe is written directly.
// Thread-safety: none.
#ifndef PACE_CORE_ATOMIC_FILE_H_
#define PACE_CORE_ATOMIC_FILE_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/status.h"

namespace pace {

class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&&) = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status Append(std::string_view text);
  Status Append(std::span<const std::byte> bytes);
  // The last call: every later one is an error.
  Status Commit();

 private:
  AtomicFile(std::string path, std::string partial, std::unique_ptr<WritableFile> file)
      : path_(std::move(path)), partial_(std::move(partial)), file_(std::move(file)) {}

  std::string path_;
  std::string partial_;                 // empty for a device
  std::unique_ptr<WritableFile> file_;  // null once committed or moved from
};

// The whole file at once, as an AtomicFile.
Status WriteFileAtomically(const std::string& path, std::string_view text);

class AtomicFolder {
 public:
  // Missing parents are created; without a Commit they are removed again.
  enum class Existing {
    kKeep,     // the target must be missing, or an empty folder
    kReplace,  // a folder in its place is replaced at one moment
  };
  static Result<AtomicFolder> Create(const std::string& target,
                                     Existing existing = Existing::kKeep);

  AtomicFolder(AtomicFolder&& other) noexcept;
  AtomicFolder& operator=(AtomicFolder&&) = delete;
  ~AtomicFolder();

  // Where to write the files.
  const std::filesystem::path& path() const { return partial_; }
  // The last call.
  Status Commit();

 private:
  AtomicFolder() = default;
  Status Rename();

  std::string target_;
  std::filesystem::path partial_;     // empty once committed or moved from
  std::vector<std::string> parents_;  // that were created, outermost first
  Existing existing_ = Existing::kKeep;
};

}  // namespace pace

#endif  // PACE_CORE_ATOMIC_FILE_H_
