#include "core/fake_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

namespace pace {
namespace {

std::string Normal(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal.empty() ? "." : normal;
}

class MemoryReadable final : public ReadableFile {
 public:
  explicit MemoryReadable(std::shared_ptr<const std::string> content)
      : content_(std::move(content)) {}
  Result<size_t> Read(std::span<char> out) override {
    const size_t count = std::min(out.size(), content_->size() - std::min(at_, content_->size()));
    std::copy_n(content_->data() + at_, count, out.data());
    at_ += count;
    return count;
  }

 private:
  const std::shared_ptr<const std::string> content_;
  size_t at_ = 0;
};

class MemoryWritable final : public WritableFile {
 public:
  explicit MemoryWritable(std::shared_ptr<std::string> content) : content_(std::move(content)) {}
  Status Append(std::string_view bytes) override {
    *content_ += bytes;
    return Status::Ok();
  }
  Status FlushToDisk() override { return Status::Ok(); }
  Status Close() override { return Status::Ok(); }

 private:
  const std::shared_ptr<std::string> content_;
};

}  // namespace

// --- memory ---

Result<MemoryFiles::Content> MemoryFiles::Find(const std::string& path) {
  const auto found = entries_.find(Normal(path));
  if (found == entries_.end()) return NotFound(path, ": cannot be read: no such file");
  if (found->second == nullptr) return Unavailable(path, ": cannot be read: is a folder");
  return found->second;
}

bool MemoryFiles::HasParent(const std::string& path) {
  const auto parent = entries_.find(FolderOf(Normal(path)));
  return parent != entries_.end() && parent->second == nullptr;
}

MemoryFiles::Entries MemoryFiles::Take(const std::string& path) {
  Entries taken;
  const std::string inside = Normal(path) + "/";
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto next = std::next(at);
    if (at->first == Normal(path) || at->first.starts_with(inside)) {
      taken.insert(entries_.extract(at));
    }
    at = next;
  }
  return taken;
}

Result<std::unique_ptr<ReadableFile>> MemoryFiles::OpenToRead(const std::string& path) {
  const MutexLock lock(mutex_);
  PACE_ASSIGN_OR_RETURN(Content content, Find(path));
  return std::unique_ptr<ReadableFile>(std::make_unique<MemoryReadable>(std::move(content)));
}

Result<std::unique_ptr<WritableFile>> MemoryFiles::OpenToWrite(const std::string& path,
                                                               WriteMode mode,
                                                               const std::string& name) {
  const MutexLock lock(mutex_);
  const std::string& shown = name.empty() ? path : name;
  if (!HasParent(path)) return NotFound(shown, ": cannot be created: no such folder");
  const auto [entry, is_new] = entries_.try_emplace(Normal(path));
  if (!is_new && (mode == WriteMode::kNew || entry->second == nullptr)) {
    return Unavailable(shown, ": cannot be created: is there already");
  }
  // Readers and mappings keep what they opened.
  if (is_new || mode == WriteMode::kReplace) entry->second = std::make_shared<std::string>();
  return std::unique_ptr<WritableFile>(std::make_unique<MemoryWritable>(entry->second));
}

Result<MappedFile> MemoryFiles::Map(const std::string& path) {
  const MutexLock lock(mutex_);
  PACE_ASSIGN_OR_RETURN(const Content content, Find(path));
  ++num_maps_;
  const auto copy = std::make_shared<const std::string>(*content);
  return MappedFile(path, std::as_bytes(std::span(*copy)), copy);
}

int64_t MemoryFiles::num_maps() {
  const MutexLock lock(mutex_);
  return num_maps_;
}

Status MemoryFiles::Truncate(const std::string& path, int64_t num_bytes) {
  const MutexLock lock(mutex_);
  PACE_ASSIGN_OR_RETURN(const Content content, Find(path));
  content->resize(static_cast<size_t>(num_bytes));
  return Status::Ok();
}

FileInfo MemoryFiles::Stat(const std::string& path) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(Normal(path));
  if (found == entries_.end()) return {};
  if (found->second == nullptr) return {FileKind::kFolder};
  return {FileKind::kRegular, static_cast<int64_t>(found->second->size())};
}

Result<std::vector<std::string>> MemoryFiles::List(const std::string& folder) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(Normal(folder));
  if (found == entries_.end() || found->second != nullptr) {
    return NotFound(folder, ": cannot be listed: no such folder");
  }
  std::vector<std::string> names;
  for (const auto& [path, content] : entries_) {
    if (path != FolderOf(path) && FolderOf(path) == Normal(folder)) {
      names.push_back(std::filesystem::path(path).filename().string());
    }
  }
  return names;
}

Status MemoryFiles::Rename(const std::string& from, const std::string& to) {
  const MutexLock lock(mutex_);
  const auto target = entries_.find(Normal(to));
  const bool is_file = target != entries_.end() && target->second != nullptr;
  if (!entries_.contains(Normal(from)) || !HasParent(to)) {
    return NotFound(to, ": cannot be replaced: no such file");
  }
  Entries replaced = Take(to);
  if (replaced.size() > 1 ||
      (!replaced.empty() && is_file != (entries_[Normal(from)] != nullptr))) {
    entries_.merge(replaced);
    return Unavailable(to, ": cannot be replaced: is a folder that is not empty");
  }
  for (auto& [path, content] : Take(from)) {
    entries_[Normal(to) + path.substr(Normal(from).size())] = content;
  }
  return Status::Ok();
}

Status MemoryFiles::Exchange(const std::string& a, const std::string& b) {
  const MutexLock lock(mutex_);
  const Entries first = Take(a);
  const Entries second = Take(b);
  const bool both = !first.empty() && !second.empty();
  const std::string& first_to = both ? b : a;
  const std::string& second_to = both ? a : b;
  for (const auto& [path, content] : first) {
    entries_[Normal(first_to) + path.substr(Normal(a).size())] = content;
  }
  for (const auto& [path, content] : second) {
    entries_[Normal(second_to) + path.substr(Normal(b).size())] = content;
  }
  return both ? Status::Ok() : NotFound(b, ": cannot be replaced: no such file");
}

Status MemoryFiles::Remove(const std::string& path) {
  const MutexLock lock(mutex_);
  Entries taken = Take(path);
  if (taken.size() <= 1) return Status::Ok();
  entries_.merge(taken);
  return Unavailable(path, ": cannot be removed: is not empty");
}

Status MemoryFiles::CreateFolder(const std::string& path) {
  const MutexLock lock(mutex_);
  if (!HasParent(path)) return NotFound(path, ": cannot be created: no such folder");
  const auto [entry, is_new] = entries_.try_emplace(Normal(path));
  if (entry->second == nullptr) return Status::Ok();
  return Unavailable(path, ": cannot be created: is there already");
}

Status MemoryFiles::FlushFolder(const std::string& folder) {
  if (Stat(folder).kind == FileKind::kFolder) return Status::Ok();
  return NotFound(folder, ": cannot be flushed to the disk: no such folder");
}

// --- faults ---

class FaultyFiles::Handle final : public WritableFile {
 public:
  Handle(FaultyFiles& disk, std::string name, std::unique_ptr<WritableFile> file)
      : disk_(disk), name_(std::move(name)), file_(std::move(file)) {}
  Status Append(std::string_view bytes) override {
    size_t stored = 0;
    const Status fault = disk_.CountWrite(name_, bytes.size(), stored);
    const Status status = file_->Append(bytes.substr(0, stored));
    return fault.ok() ? status : fault;
  }
  Status FlushToDisk() override {
    PACE_RETURN_IF_ERROR(disk_.CountFlush(name_));
    return file_->FlushToDisk();
  }
  Status Close() override { return file_->Close(); }

 private:
  FaultyFiles& disk_;
  const std::string name_;
  const std::unique_ptr<WritableFile> file_;
};

Status FaultyFiles::CountWrite(const std::string& path, size_t num_bytes, size_t& stored) {
  const MutexLock lock(mutex_);
  const int64_t index = num_writes_++;
  num_bytes_ += static_cast<int64_t>(num_bytes);
  stored = num_bytes;
  const bool full =
      fault_.kind == DiskFault::kFullDisk && (index >= fault_.at || num_bytes_ > fault_.max_bytes);
  const bool torn = fault_.kind == DiskFault::kTornWrite && index == fault_.at;
  if (!full && !torn) return Status::Ok();
  if (failed_path_.empty()) failed_path_ = path;
  stored = torn ? num_bytes / 2 : 0;
  return Unavailable(path, ": cannot be written: ",
                     full ? "No space left on device (is the disk full?)" : "Input/output error");
}

Status FaultyFiles::CountWrite(const std::string& path) {
  size_t ignored = 0;
  return CountWrite(path, 0, ignored);
}

Status FaultyFiles::CountFlush(const std::string& path) {
  const MutexLock lock(mutex_);
  const int64_t index = num_flushes_++;
  if (fault_.kind != DiskFault::kFailedFlush || index != fault_.at) return Status::Ok();
  failed_path_ = path;
  return Unavailable(path, ": cannot be flushed to the disk: Input/output error");
}

int64_t FaultyFiles::num_writes() const {
  const MutexLock lock(mutex_);
  return num_writes_;
}

int64_t FaultyFiles::num_flushes() const {
  const MutexLock lock(mutex_);
  return num_flushes_;
}

std::string FaultyFiles::failed_path() const {
  const MutexLock lock(mutex_);
  return failed_path_;
}

Result<std::unique_ptr<WritableFile>> FaultyFiles::OpenToWrite(const std::string& path,
                                                               WriteMode mode,
                                                               const std::string& name) {
  const std::string& shown = name.empty() ? path : name;
  PACE_RETURN_IF_ERROR(CountWrite(shown));
  PACE_ASSIGN_OR_RETURN(auto file, files_.OpenToWrite(path, mode, name));
  return std::unique_ptr<WritableFile>(std::make_unique<Handle>(*this, shown, std::move(file)));
}

Status FaultyFiles::Rename(const std::string& from, const std::string& to) {
  PACE_RETURN_IF_ERROR(CountWrite(to));
  return files_.Rename(from, to);
}

Status FaultyFiles::Exchange(const std::string& a, const std::string& b) {
  PACE_RETURN_IF_ERROR(CountWrite(b));
  return files_.Exchange(a, b);
}

Status FaultyFiles::CreateFolder(const std::string& path) {
  PACE_RETURN_IF_ERROR(CountWrite(path));
  return files_.CreateFolder(path);
}

Status FaultyFiles::FlushFolder(const std::string& folder) {
  PACE_RETURN_IF_ERROR(CountFlush(folder));
  return files_.FlushFolder(folder);
}

}  // namespace pace
