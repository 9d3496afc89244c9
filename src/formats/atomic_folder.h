// AtomicFolder makes a folder that appears whole or not at all.
//
// Files are written into path(), a folder beside the target; Commit renames it.
// Without a Commit that succeeded it is removed with all it holds, and so are
// the parent folders made for it. A process that is killed leaves at most a
// folder whose name has ".partial-" in it.
// Thread-safety: none.
#ifndef PACE_FORMATS_ATOMIC_FOLDER_H_
#define PACE_FORMATS_ATOMIC_FOLDER_H_

#include <filesystem>
#include <string>
#include <vector>

#include "core/status.h"

namespace pace {

class AtomicFolder {
 public:
  // `target` must not be there, or be an empty folder. Parents are made.
  static Result<AtomicFolder> Create(const std::string& target);

  AtomicFolder(AtomicFolder&& other) noexcept;
  AtomicFolder& operator=(AtomicFolder&&) = delete;
  ~AtomicFolder();

  const std::filesystem::path& path() const { return aside_; }
  // The last call.
  Status Commit();

 private:
  AtomicFolder() = default;

  std::filesystem::path target_;
  std::filesystem::path aside_;                 // empty once renamed or moved from
  std::vector<std::filesystem::path> parents_;  // that were made, outermost first
};

}  // namespace pace

#endif  // PACE_FORMATS_ATOMIC_FOLDER_H_
