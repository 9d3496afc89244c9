#include "sandbox/control_groups.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>

#include "core/concat.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "pace-sandbox-";
// Of a group that a caller made below its own, to move there.
constexpr std::string_view kCallerSuffix = "-caller";

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// `words` may end with a line's end.
bool HasWord(std::string_view words, std::string_view word, char separator = ',') {
  if (words.ends_with('\n')) words.remove_suffix(1);
  for (const std::string_view part : Split(words, separator)) {
    if (part == word) return true;
  }
  return false;
}

// Where a hierarchy is mounted: `controller` for v1, "" for v2.
std::string MountOf(std::string_view mounts, std::string_view controller) {
  for (const std::string_view line : Split(mounts, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const std::vector<std::string_view> front = Split(line.substr(0, dash), ' ');
    const std::vector<std::string_view> back = Split(line.substr(dash + 3), ' ');
    if (front.size() < 5 || back.size() < 3) continue;
    // Only mounts of a hierarchy's root: below them, paths mean what they say.
    if (front[3] != "/") continue;
    const bool fits = controller.empty() ? back[0] == "cgroup2"
                                         : back[0] == "cgroup" && HasWord(back[2], controller);
    if (fits) return std::string(front[4]);
  }
  return "";
}

std::string GroupOf(std::string_view memberships, std::string_view mounts,
                    std::string_view controller) {
  for (const std::string_view line : Split(memberships, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool fits =
        controller.empty() ? line.starts_with("0::") : HasWord(controllers, controller);
    if (!fits) continue;
    const std::string mount = MountOf(mounts, controller);
    const std::string_view path = line.substr(second + 1);
    return mount.empty() ? "" : path == "/" ? mount : Concat(mount, path);
  }
  return "";
}

class KernelFiles final : public GroupFiles {
 public:
  bool Make(const std::string& folder) override { return ::mkdir(folder.c_str(), 0755) == 0; }
  void Remove(const std::string& folder) override {
    // The last process may still be on its way out.
    for (int attempt = 0; attempt < 50; ++attempt) {
      if (::rmdir(folder.c_str()) == 0 || errno != EBUSY) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::vector<std::string> FoldersIn(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    fs::directory_iterator at(folder, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
      if (at->is_directory(error)) names.push_back(at->path().filename().string());
    }
    return names;
  }
  FileDescriptor Open(const std::string& path, int flags) override {
    return FileDescriptor(::open(path.c_str(), flags | O_CLOEXEC));
  }
};

void RemoveTree(GroupFiles& files, const std::string& folder) {
  for (const std::string& name : files.FoldersIn(folder)) {
    files.Remove(Concat(folder, "/", name));
  }
  files.Remove(folder);
}

// Groups whose maker is gone.
void RemoveOrphans(GroupFiles& files, const std::string& parent) {
  for (const std::string& name : files.FoldersIn(parent)) {
    if (!name.starts_with(kPrefix)) continue;
    pid_t maker = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), maker);
    if (maker <= 0 || ::kill(maker, 0) == 0 || errno != ESRCH) continue;
    RemoveTree(files, Concat(parent, "/", name));
  }
}

bool HandsDown(GroupFiles& files, const std::string& group) {
  const std::string controllers = files.Read(group + "/cgroup.subtree_control");
  return HasWord(controllers, "memory", ' ') && HasWord(controllers, "pids", ' ');
}

// Lets groups below this one have limits.
bool HandDown(GroupFiles& files, const std::string& group) {
  if (!HandsDown(files, group)) {
    files.Write(group + "/cgroup.subtree_control", "+memory +pids");
  }
  // Shares of the processor are worth having and not always to be had.
  if (!HasWord(files.Read(group + "/cgroup.subtree_control"), "cpu", ' ')) {
    files.Write(group + "/cgroup.subtree_control", "+cpu");
  }
  return HandsDown(files, group);
}

// The group that hands its controllers down to ours: v2 lets a group with processes of
// its own do so at its root alone. Empty where there is none.
std::string UnifiedParent(GroupFiles& files, std::string own) {
  const size_t slash = own.rfind('/');
  if (own.ends_with(kCallerSuffix) && slash != std::string::npos) own.resize(slash);
  if (HandDown(files, own)) return own;
  // Alone in its group, the caller may move; others it leaves where they are.
  const std::string self = Concat(::getpid());
  if (files.Read(own + "/cgroup.procs") != self + "\n") return "";
  const std::string leaf = Concat(own, "/", kPrefix, self, kCallerSuffix);
  if (!files.Make(leaf)) return "";
  if (files.Write(leaf + "/cgroup.procs", self) && HandDown(files, own)) return own;
  files.Write(own + "/cgroup.procs", self);
  files.Remove(leaf);
  return "";
}

}  // namespace

std::string GroupFiles::Read(const std::string& path) {
  const FileDescriptor file = Open(path, O_RDONLY);
  std::string text;
  char buffer[4096];
  ssize_t count = 0;
  while (file.valid() && (count = ::read(file.get(), buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

bool GroupFiles::Write(const std::string& path, std::string_view text) {
  const FileDescriptor file = Open(path, O_WRONLY);
  return file.valid() &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

GroupFiles& KernelGroupFiles() {
  static KernelFiles files;
  return files;
}

OwnGroups FindOwnGroups(std::string_view memberships, std::string_view mounts) {
  return {.memory = GroupOf(memberships, mounts, "memory"),
          .processes = GroupOf(memberships, mounts, "pids"),
          .processor = GroupOf(memberships, mounts, "cpu"),
          .unified = GroupOf(memberships, mounts, "")};
}

bool ControlGroups::MakeRoot(const std::string& parent, const std::string& name) {
  RemoveOrphans(files_, parent);
  const std::string folder = Concat(parent, "/", name);
  if (!files_.Make(folder)) return false;
  roots_.push_back(folder);
  return true;
}

// All programs together weigh as much as one group or thread beside them: whoever has
// more threads than that, as a trainer does, keeps most of the processor.
bool ControlGroups::MakeRoots(const OwnGroups& own) {
  static std::atomic<int64_t> num_made{0};
  const std::string name = Concat(kPrefix, ::getpid(), "-", num_made++);
  if (unified_) {
    const std::string parent = UnifiedParent(files_, own.unified);
    if (parent.empty() || !MakeRoot(parent, name) || !HandDown(files_, roots_[0])) return false;
    bounds_processor_ = files_.Write(roots_[0] + "/cpu.weight", "100");
    return true;
  }
  if (!MakeRoot(own.memory, name) || !MakeRoot(own.processes, name)) return false;
  bounds_processor_ = !own.processor.empty() && MakeRoot(own.processor, name) &&
                      files_.Write(roots_.back() + "/cpu.shares", "1024");
  return true;
}

bool ControlGroups::AddSlot(int64_t index, int64_t max_processes) {
  Slot& slot = slots_.emplace_back();
  for (const std::string& root : roots_) {
    const std::string folder = Concat(root, "/", index);
    if (!files_.Make(folder)) return false;
    slot.folders.push_back(folder);
    slot.memberships.push_back(files_.Open(folder + "/cgroup.procs", O_WRONLY));
    if (!slot.memberships.back().valid()) return false;
  }
  slot.memory = slot.folders[0];
  slot.events =
      files_.Open(slot.memory + (unified_ ? "/memory.events" : "/memory.oom_control"), O_RDONLY);
  if (!slot.events.valid()) return false;
  // A program's first process, and one per kind of interpreter that starts programs here.
  const std::string processes = Concat(max_processes + 3);
  return files_.Write(slot.folders[unified_ ? 0 : 1] + "/pids.max", processes);
}

std::unique_ptr<ControlGroups> ControlGroups::Make(const OwnGroups& own, GroupFiles& files,
                                                   int64_t num_slots, int64_t max_processes) {
  const bool first = !own.memory.empty() && !own.processes.empty();
  if (!first && own.unified.empty()) return nullptr;
  auto groups = std::unique_ptr<ControlGroups>(new ControlGroups(files, !first));
  if (!groups->MakeRoots(own)) return nullptr;
  for (int64_t index = 0; index < num_slots; ++index) {
    if (!groups->AddSlot(index, max_processes)) return nullptr;
  }
  constexpr int64_t kAny = int64_t{1} << 30;
  return groups->SetMemory(0, kAny) ? std::move(groups) : nullptr;
}

std::unique_ptr<ControlGroups> ControlGroups::Make(int64_t num_slots, int64_t max_processes) {
  GroupFiles& files = KernelGroupFiles();
  const OwnGroups own =
      FindOwnGroups(files.Read("/proc/self/cgroup"), files.Read("/proc/self/mountinfo"));
  return Make(own, files, num_slots, max_processes);
}

ControlGroups::~ControlGroups() {
  for (Slot& slot : slots_) {
    slot.memberships.clear();
    for (const std::string& folder : slot.folders) files_.Remove(folder);
  }
  for (const std::string& root : roots_) files_.Remove(root);
}

bool ControlGroups::SetMemory(int64_t index, int64_t bytes) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (slot.memory_bytes == bytes) return true;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  const std::string limit = Concat(std::min(bytes, kMost) + kExtraMemory);
  if (unified_) {
    // Not all machines swap; where they do, a program may not.
    files_.Write(slot.memory + "/memory.swap.max", "0");
    if (!files_.Write(slot.memory + "/memory.max", limit)) return false;
  } else {
    // The limit of both may never be the smaller one: it comes first on the way up,
    // and last on the way down.
    const std::string both = slot.memory + "/memory.memsw.limit_in_bytes";
    files_.Write(both, limit);
    if (!files_.Write(slot.memory + "/memory.limit_in_bytes", limit)) return false;
    files_.Write(both, limit);
  }
  slot.memory_bytes = bytes;
  return true;
}

std::vector<int> ControlGroups::Memberships(int64_t index) const {
  std::vector<int> descriptors;
  for (const FileDescriptor& file : slots_[static_cast<size_t>(index)].memberships) {
    descriptors.push_back(file.get());
  }
  return descriptors;
}

int ControlGroups::MemoryEvents(int64_t index) const {
  return slots_[static_cast<size_t>(index)].events.get();
}

int64_t ControlGroups::PeakMemory(int64_t index) const {
  const Slot& slot = slots_[static_cast<size_t>(index)];
  const std::string text =
      files_.Read(slot.memory + (unified_ ? "/memory.peak" : "/memory.max_usage_in_bytes"));
  int64_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes;
}

}  // namespace pace
