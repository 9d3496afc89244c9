// ControlGroups: limits on memory, processes and processor share of whole programs.
//
// Below the caller's own group there is one group for the sandbox, whose processor share all
// programs divide, and in it one group per slot, which programs use one after another; a process
// joins it through descriptors that it receives. Both hierarchies are supported: v1, if the
// caller's memory and process groups are writable, and v2, if the caller's group is writable and
// delegates its controllers, or can be made to: a caller that is alone in its group moves into a
// group below it. Groups that a dead process left behind are removed by the next one.
//
// Thread-safety: slots are independent of each other; each is used by one thread at a time.
#ifndef PACE_SANDBOX_CONTROL_GROUPS_H_
#define PACE_SANDBOX_CONTROL_GROUPS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_descriptor.h"

namespace pace {

// The caller's groups: absolute folders, empty if there is none.
struct OwnGroups {
  std::string memory{};
  std::string processes{};
  std::string processor{};
  std::string unified{};  // v2: all at once
};
// From the texts of /proc/self/cgroup and /proc/self/mountinfo.
OwnGroups FindOwnGroups(std::string_view memberships, std::string_view mounts);

// The files of the groups; tests provide their own tree.
class GroupFiles {
 public:
  virtual ~GroupFiles() = default;
  virtual bool Make(const std::string& folder) = 0;
  virtual void Remove(const std::string& folder) = 0;
  virtual std::vector<std::string> FoldersIn(const std::string& folder) = 0;
  virtual FileDescriptor Open(const std::string& path, int flags) = 0;

  // Empty if it cannot be read.
  std::string Read(const std::string& path);
  bool Write(const std::string& path, std::string_view text);
};
// The kernel's.
GroupFiles& KernelGroupFiles();

class ControlGroups {
 public:
  // Null if groups are unavailable: the program's first process then watches its memory. Borrows
  // `files`.
  static std::unique_ptr<ControlGroups> Make(const OwnGroups& own, GroupFiles& files,
                                             int64_t num_slots, int64_t max_processes);
  // Of this process.
  static std::unique_ptr<ControlGroups> Make(int64_t num_slots, int64_t max_processes);
  ~ControlGroups();
  ControlGroups(const ControlGroups&) = delete;
  ControlGroups& operator=(const ControlGroups&) = delete;

  // Before a program enters the slot. The group's limit is kExtraMemory higher, for our own
  // processes in it. False if the kernel refuses.
  bool SetMemory(int64_t slot, int64_t bytes);
  // The membership files of the slot; they live as long as this object.
  std::vector<int> Memberships(int64_t slot) const;
  // The file that counts processes killed for memory; it lives as long as this object.
  int MemoryEvents(int64_t slot) const;

  // The peak memory of the slot; 0 if this kernel does not report it.
  int64_t PeakMemory(int64_t slot) const;
  bool bounds_processor() const { return bounds_processor_; }
  bool is_unified() const { return unified_; }

  // How much the limit of a slot's group exceeds that of its program.
  static constexpr int64_t kExtraMemory = int64_t{48} << 20;

 private:
  struct Slot {
    std::vector<std::string> folders{};
    std::vector<FileDescriptor> memberships{};
    FileDescriptor events{};
    std::string memory{};  // its folder in the memory hierarchy
    int64_t memory_bytes = 0;
  };

  ControlGroups(GroupFiles& files, bool unified) : files_(files), unified_(unified) {}
  bool MakeRoots(const OwnGroups& own);
  bool MakeRoot(const std::string& parent, const std::string& name);
  bool AddSlot(int64_t index, int64_t max_processes);

  GroupFiles& files_;
  const bool unified_;
  bool bounds_processor_ = false;
  std::vector<std::string> roots_;  // the sandbox's: memory, processes, processor; or one
  std::vector<Slot> slots_;
};

}  // namespace pace

#endif  // PACE_SANDBOX_CONTROL_GROUPS_H_
