#include "sandbox/root_plan.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "core/concat.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

class Planner {
 public:
  explicit Planner(const FileSystemView& machine) : machine_(machine) {}

  // With all folders above it.
  void Directory(const std::string& path) {
    for (size_t end = 1; end < path.size();) {
      end = path.find('/', end + 1);
      if (end == std::string::npos) end = path.size();
      const std::string above = path.substr(0, end);
      if (made_.insert(above).second) Add(RootStepKind::kDirectory, "", above);
    }
  }
  void File(const std::string& path, std::string content) {
    Add(RootStepKind::kFile, std::move(content), path);
  }
  void Copy(const std::string& path) {
    std::string content = machine_.Content(path);
    if (!content.empty()) File(path, std::move(content));
  }
  void Link(const std::string& path, std::string to) {
    Add(RootStepKind::kLink, std::move(to), path);
  }
  void Bind(const std::string& path) {
    if (!machine_.IsDirectory(path)) return;
    Directory(path);
    Add(RootStepKind::kBind, Concat("/old", machine_.RealPath(path)), path);
  }
  // A link stays a link: /lib is one on most machines.
  void BindOrLink(const std::string& path) {
    std::string to = machine_.LinkTarget(path);
    if (to.empty()) return Bind(path);
    Link(path, std::move(to));
  }
  void Device(const std::string& path) {
    File(path, "");
    Add(RootStepKind::kBindDevice, Concat("/old", path), path);
  }
  void Proc() {
    Directory("/proc");
    Add(RootStepKind::kProc, "/old/proc", "/proc");
  }
  std::vector<RootStep> Take() { return std::move(steps_); }

 private:
  void Add(RootStepKind kind, std::string source, const std::string& target) {
    steps_.push_back({kind, std::move(source), Concat("/new", target)});
  }

  const FileSystemView& machine_;
  std::set<std::string> made_;
  std::vector<RootStep> steps_;
};

class RealFileSystem final : public FileSystemView {
 public:
  bool IsDirectory(const std::string& path) const override {
    std::error_code error;
    return fs::is_directory(path, error);
  }
  std::string LinkTarget(const std::string& path) const override {
    std::error_code error;
    return fs::is_symlink(path, error) ? fs::read_symlink(path, error).string() : "";
  }
  std::string RealPath(const std::string& path) const override {
    std::error_code error;
    return fs::canonical(path, error).string();
  }
  std::string Content(const std::string& path) const override {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
};

}  // namespace

std::vector<RootStep> PlanRoot(const PythonInstallation& python, const FileSystemView& machine) {
  Planner plan(machine);
  plan.Directory("/tmp");
  plan.Bind("/usr");
  for (const char* path : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    plan.BindOrLink(path);
  }
  plan.Directory("/etc");
  plan.Copy("/etc/ld.so.cache");
  plan.Copy("/etc/localtime");
  plan.Bind("/etc/alternatives");
  plan.File("/etc/passwd", "sandbox:x:1000:1000:sandbox:/tmp:/bin/sh\n");
  plan.File("/etc/group", "sandbox:x:1000:\n");
  plan.File("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n");
  plan.Directory("/dev");
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
    plan.Device(path);
  }
  plan.Link("/dev/fd", "/proc/self/fd");
  plan.Link("/dev/stdin", "/proc/self/fd/0");
  plan.Link("/dev/stdout", "/proc/self/fd/1");
  plan.Link("/dev/stderr", "/proc/self/fd/2");
  // One limit for all that a program may write.
  plan.Link("/dev/shm", "/tmp");
  for (const std::string& folder : python.folders) plan.Bind(folder);
  plan.Proc();
  return plan.Take();
}

const FileSystemView& ThisMachine() {
  static const RealFileSystem machine;
  return machine;
}

}  // namespace pace
