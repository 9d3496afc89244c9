#include "core/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/file_descriptor.h"

namespace pace {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

// From errno.
Status Failed(const std::string& path, std::string_view what) {
  const int error = errno;
  const bool is_full = error == ENOSPC || error == EDQUOT;
  const std::string message = Concat(path, ": cannot be ", what, ": ", std::strerror(error),
                                     is_full ? " (is the disk full?)" : "");
  const bool is_missing = error == ENOENT || error == ENOTDIR;
  return {is_missing ? StatusCode::kNotFound : StatusCode::kUnavailable, message};
}

// Pipes and some file systems cannot flush, and need not.
bool Flushed(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS;
}

class OsReadable final : public ReadableFile {
 public:
  OsReadable(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  Result<size_t> Read(std::span<char> out) override {
    while (true) {
      const ssize_t count = ::read(file_.get(), out.data(), out.size());
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) return Failed(path_, "read");
    }
  }

 private:
  const std::string path_;
  FileDescriptor file_;
};

class OsWritable final : public WritableFile {
 public:
  OsWritable(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}
  ~OsWritable() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failed(name_, "written");
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return Status::Ok();
  }
  Status FlushToDisk() override {
    return Flushed(descriptor_) ? Status::Ok() : Failed(name_, "flushed to the disk");
  }
  Status Close() override {
    const int descriptor = std::exchange(descriptor_, -1);
    return ::close(descriptor) == 0 ? Status::Ok() : Failed(name_, "written");
  }

 private:
  const std::string name_;
  int descriptor_;  // -1 once closed
};

class OperatingSystemFiles final : public Files {
 public:
  Result<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) override {
    FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return Failed(path, "read");
    return std::unique_ptr<ReadableFile>(std::make_unique<OsReadable>(path, std::move(file)));
  }

  Result<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path, WriteMode mode,
                                                    const std::string& name) override {
    const int how = mode == WriteMode::kReplace ? O_TRUNC
                    : mode == WriteMode::kNew   ? O_EXCL
                                                : O_APPEND;
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
    const std::string& shown = name.empty() ? path : name;
    if (file < 0) return Failed(shown, mode == WriteMode::kAppend ? "opened" : "created");
    return std::unique_ptr<WritableFile>(std::make_unique<OsWritable>(shown, file));
  }

  Result<MappedFile> Map(const std::string& path) override {
    // Without O_NONBLOCK, opening a pipe waits for its writer.
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat facts{};
    if (!file.valid() || ::fstat(file.get(), &facts) != 0) return Failed(path, "opened");
    if (!S_ISREG(facts.st_mode)) return InvalidArgument(path, ": must be a regular file");
    const auto size = static_cast<size_t>(facts.st_size);
    if (size == 0) return MappedFile(path, {}, nullptr);
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (address == MAP_FAILED) return Failed(path, "mapped");
    std::shared_ptr<const void> owner(
        address, [size](const void* at) { ::munmap(const_cast<void*>(at), size); });
    return MappedFile(path, {static_cast<const std::byte*>(address), size}, std::move(owner));
  }

  Status Truncate(const std::string& path, int64_t num_bytes) override {
    return ::truncate(path.c_str(), num_bytes) == 0 ? Status::Ok() : Failed(path, "cut");
  }

  FileInfo Stat(const std::string& path) override {
    struct stat facts{};
    if (::stat(path.c_str(), &facts) != 0) return {};
    if (S_ISREG(facts.st_mode)) return {FileKind::kRegular, facts.st_size};
    return {S_ISDIR(facts.st_mode) ? FileKind::kFolder : FileKind::kOther};
  }

  Result<std::vector<std::string>> List(const std::string& folder) override {
    DIR* const opened = ::opendir(folder.c_str());
    if (opened == nullptr) return Failed(folder, "listed");
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* const entry = ::readdir(opened)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int error = errno;
    ::closedir(opened);
    errno = error;
    if (error != 0) return Failed(folder, "listed");
    std::sort(names.begin(), names.end());
    return names;
  }

  Status Rename(const std::string& from, const std::string& to) override {
    return ::rename(from.c_str(), to.c_str()) == 0 ? Status::Ok() : Failed(to, "replaced");
  }
  Status Exchange(const std::string& a, const std::string& b) override {
    const int done = ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
    return done == 0 ? Status::Ok() : Failed(b, "replaced");
  }
  Status Remove(const std::string& path) override {
    return std::remove(path.c_str()) == 0 || errno == ENOENT ? Status::Ok()
                                                             : Failed(path, "removed");
  }
  Status CreateFolder(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) == 0) return Status::Ok();
    if (errno == EEXIST && Stat(path).kind == FileKind::kFolder) return Status::Ok();
    return Failed(path, "created");
  }
  Status FlushFolder(const std::string& folder) override {
    const FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool flushed = opened.valid() && Flushed(opened.get());
    return flushed ? Status::Ok() : Failed(folder, "flushed to the disk");
  }
};

std::atomic<Files*>& Current() {
  static std::atomic<Files*> current = &OsFiles();
  return current;
}

}  // namespace

Files& OsFiles() {
  static OperatingSystemFiles files;
  return files;
}

Files& Files::Default() {
  return *Current().load();
}

ScopedFiles::ScopedFiles(Files& files) : before_(Current().exchange(&files)) {}

ScopedFiles::~ScopedFiles() {
  Current() = before_;
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  return Files::Default().Map(path);
}

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  PACE_ASSIGN_OR_RETURN(const auto file, Files::Default().OpenToRead(path));
  // Read in blocks: only regular files know their size.
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + kBlockBytes);
    PACE_ASSIGN_OR_RETURN(const size_t count, file->Read(std::span(text).subspan(before)));
    text.resize(before + count);
    if (count == 0) return text;
    if (text.size() > max_bytes) {
      return InvalidArgument(path, ": larger than ", max_bytes, " bytes");
    }
  }
}

Status CreateFolders(const std::string& folder) {
  Files& files = Files::Default();
  if (files.Stat(folder).kind == FileKind::kFolder) return Status::Ok();
  const std::string parent = FolderOf(folder);
  if (parent != folder && !files.Exists(parent)) PACE_RETURN_IF_ERROR(CreateFolders(parent));
  return files.CreateFolder(folder);
}

Status RemoveTree(const std::string& path) {
  Files& files = Files::Default();
  // A link to a folder is removed, not followed.
  if (files.Stat(path).kind == FileKind::kFolder && !files.Remove(path).ok()) {
    PACE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(path));
    for (const std::string& name : names) PACE_RETURN_IF_ERROR(RemoveTree(path + "/" + name));
  }
  return files.Remove(path);
}

std::string FolderOf(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = end == std::string::npos ? end : path.rfind('/', end);
  if (slash == std::string::npos) return path.starts_with('/') ? "/" : ".";
  const size_t last = path.find_last_not_of('/', slash);
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

}  // namespace pace
