#include "core/atomic_file.h"

#include <unistd.h>

#include <utility>

namespace pace {
namespace {

// A name that nothing has yet, distinct from those of other processes.
std::string FreeName(const std::string& prefix) {
  for (int64_t attempt = 0;; ++attempt) {
    std::string name = Concat(prefix, static_cast<int64_t>(::getpid()), "-", attempt);
    if (!Files::Default().Exists(name)) return name;
  }
}

Status CheckTarget(const std::string& target) {
  const FileKind kind = Files::Default().Stat(target).kind;
  if (kind == FileKind::kMissing) return Status::Ok();
  if (kind != FileKind::kFolder) {
    return InvalidArgument(target, ": is there already, and is not a folder");
  }
  PACE_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files::Default().List(target));
  if (!names.empty()) return InvalidArgument(target, ": is there already, and is not empty");
  return Status::Ok();
}

}  // namespace

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  if (path.empty() || path.ends_with('/')) return InvalidArgument(path, ": must name a file");
  // A device or a pipe cannot be replaced.
  if (Files::Default().Stat(path).kind == FileKind::kOther) {
    PACE_ASSIGN_OR_RETURN(auto device, Files::Default().OpenToWrite(path, WriteMode::kReplace));
    return AtomicFile(path, "", std::move(device));
  }
  std::string partial = FreeName(path + ".partial-");
  PACE_ASSIGN_OR_RETURN(auto file, Files::Default().OpenToWrite(partial, WriteMode::kNew, path));
  return AtomicFile(path, std::move(partial), std::move(file));
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr && !partial_.empty()) (void)Files::Default().Remove(partial_);
}

Status AtomicFile::Append(std::string_view text) {
  if (file_ == nullptr) return InvalidArgument(path_, ": is already committed");
  return file_->Append(text);
}

Status AtomicFile::Append(std::span<const std::byte> bytes) {
  return Append(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

Status AtomicFile::Commit() {
  if (file_ == nullptr) return InvalidArgument(path_, ": is already committed");
  Files& files = Files::Default();
  Status status = file_->FlushToDisk();
  if (status.ok()) status = file_->Close();
  if (partial_.empty()) {
    file_.reset();
    return status;
  }
  if (status.ok()) status = files.Rename(partial_, path_);
  if (!status.ok()) (void)files.Remove(partial_);
  file_.reset();
  return status.ok() ? files.FlushFolder(FolderOf(path_)) : status;
}

Status WriteFileAtomically(const std::string& path, std::string_view text) {
  PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  PACE_RETURN_IF_ERROR(file.Append(text));
  return file.Commit();
}

Result<AtomicFolder> AtomicFolder::Create(const std::string& target, Existing existing) {
  std::filesystem::path path = std::filesystem::path(target).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();  // a slash at the end
  if (path.filename().empty() || path == "." || path == "..") {
    return InvalidArgument(target, ": must name a folder");
  }
  AtomicFolder folder;
  folder.target_ = path.string();
  folder.existing_ = existing;
  if (existing == Existing::kKeep) PACE_RETURN_IF_ERROR(CheckTarget(folder.target_));
  Files& files = Files::Default();
  std::vector<std::string> missing;  // innermost first
  for (std::string at = FolderOf(folder.target_); !files.Exists(at); at = FolderOf(at)) {
    missing.push_back(at);
  }
  for (; !missing.empty(); missing.pop_back()) {
    PACE_RETURN_IF_ERROR(files.CreateFolder(missing.back()));
    folder.parents_.push_back(missing.back());
  }
  const std::string name = Concat(".partial-", path.filename().string(), "-");
  const std::string partial = FreeName((path.parent_path() / name).string());
  PACE_RETURN_IF_ERROR(files.CreateFolder(partial));
  folder.partial_ = partial;
  return folder;
}

AtomicFolder::AtomicFolder(AtomicFolder&& other) noexcept
    : target_(std::move(other.target_)),
      partial_(std::exchange(other.partial_, {})),
      parents_(std::exchange(other.parents_, {})),
      existing_(other.existing_) {}

AtomicFolder::~AtomicFolder() {
  if (!partial_.empty()) (void)RemoveTree(partial_.string());
  // Only those that are empty go.
  for (; !parents_.empty(); parents_.pop_back()) (void)Files::Default().Remove(parents_.back());
}

Status AtomicFolder::Rename() {
  Files& files = Files::Default();
  const std::string partial = partial_.string();
  if (existing_ == Existing::kKeep || !files.Exists(target_)) {
    return files.Rename(partial, target_);
  }
  if (files.Exchange(partial, target_).ok()) {
    (void)RemoveTree(partial);
    return Status::Ok();
  }
  // Not every file system can exchange names.
  const std::string replaced = FreeName(partial + "-");
  PACE_RETURN_IF_ERROR(files.Rename(target_, replaced));
  const Status renamed = files.Rename(partial, target_);
  if (!renamed.ok()) {
    PACE_RETURN_IF_ERROR(files.Rename(replaced, target_));
    return renamed;
  }
  (void)RemoveTree(replaced);
  return Status::Ok();
}

Status AtomicFolder::Commit() {
  if (partial_.empty()) return InvalidArgument(target_, ": is already committed");
  PACE_RETURN_IF_ERROR(Files::Default().FlushFolder(partial_.string()));
  PACE_RETURN_IF_ERROR(Rename());
  partial_.clear();
  parents_.clear();
  return Files::Default().FlushFolder(FolderOf(target_));
}

}  // namespace pace
