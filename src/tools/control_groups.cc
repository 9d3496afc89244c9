#include "tools/control_groups.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/concat.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "pace-sandbox-";

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool HasWord(std::string_view words, std::string_view word) {
  for (const std::string_view part : Split(words, ',')) {
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

std::string Content(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool WriteText(const std::string& path, std::string_view text) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.valid() &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void RemoveGroup(const std::string& folder) {
  // The last process may still be on its way out.
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (::rmdir(folder.c_str()) == 0 || errno != EBUSY) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Groups whose maker is gone.
void RemoveOrphans(const std::string& parent) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    pid_t maker = 0;
    const char* begin = name.data() + kPrefix.size();
    std::from_chars(begin, name.data() + name.size(), maker);
    if (maker > 0 && ::kill(maker, 0) != 0 && errno == ESRCH) ::rmdir(entry.path().c_str());
  }
}

}  // namespace

OwnGroups FindOwnGroups(std::string_view memberships, std::string_view mounts) {
  return {.memory = GroupOf(memberships, mounts, "memory"),
          .processes = GroupOf(memberships, mounts, "pids"),
          .unified = GroupOf(memberships, mounts, "")};
}

bool ControlGroups::AddPlace(const OwnGroups& own, int64_t index, int64_t max_processes) {
  static std::atomic<int64_t> num_made{0};
  const std::string name = Concat(kPrefix, ::getpid(), "-", num_made++, "-", index);
  Place& place = places_.emplace_back();
  const auto join = [&place, &name](const std::string& parent) {
    const std::string folder = Concat(parent, "/", name);
    if (parent.empty() || ::mkdir(folder.c_str(), 0755) != 0) return false;
    place.folders.push_back(folder);
    FileDescriptor members(::open(Concat(folder, "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    const bool opened = members.valid();
    place.memberships.push_back(std::move(members));
    return opened;
  };
  // A program's first process, which waits for it, counts as well.
  const std::string processes = Concat(max_processes + 1);
  if (!own.memory.empty() && !own.processes.empty()) {
    if (!join(own.memory) || !join(own.processes)) return false;
    place.memory_limit = place.folders[0] + "/memory.limit_in_bytes";
    return WriteText(place.folders[1] + "/pids.max", processes);
  }
  if (!join(own.unified)) return false;
  place.memory_limit = place.folders[0] + "/memory.max";
  // Not all machines swap; where they do, a program may not.
  WriteText(place.folders[0] + "/memory.swap.max", "0");
  return WriteText(place.folders[0] + "/pids.max", processes);
}

std::unique_ptr<ControlGroups> ControlGroups::Make(int64_t num_places, int64_t max_processes) {
  const OwnGroups own =
      FindOwnGroups(Content("/proc/self/cgroup"), Content("/proc/self/mountinfo"));
  for (const std::string* parent : {&own.memory, &own.processes, &own.unified}) {
    if (!parent->empty()) RemoveOrphans(*parent);
  }
  auto groups = std::unique_ptr<ControlGroups>(new ControlGroups);
  for (int64_t index = 0; index < num_places; ++index) {
    if (!groups->AddPlace(own, index, max_processes)) return nullptr;
  }
  constexpr int64_t kAny = int64_t{1} << 30;
  return groups->SetMemory(0, kAny) ? std::move(groups) : nullptr;
}

ControlGroups::~ControlGroups() {
  for (Place& place : places_) {
    place.memberships.clear();
    for (const std::string& folder : place.folders) RemoveGroup(folder);
  }
}

bool ControlGroups::SetMemory(int64_t index, int64_t bytes) {
  Place& place = places_[static_cast<size_t>(index)];
  if (place.memory_bytes == bytes) return true;
  if (!WriteText(place.memory_limit, Concat(bytes))) return false;
  place.memory_bytes = bytes;
  return true;
}

std::vector<int> ControlGroups::Memberships(int64_t index) const {
  std::vector<int> descriptors;
  for (const FileDescriptor& file : places_[static_cast<size_t>(index)].memberships) {
    descriptors.push_back(file.get());
  }
  return descriptors;
}

}  // namespace pace
