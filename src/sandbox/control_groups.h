// ControlGroups: memory, processes and processor shares of whole programs, by the kernel.
//
// Below the caller's own group there is one group for the sandbox, whose processor
// share all programs have together, and in it one per slot, used by one program after
// another; a process joins through descriptors that it is handed. Both hierarchies work:
// v1, where the caller's groups of memory and processes are writable, and v2, where the
// caller's group is writable and hands its controllers down, or can be made to: a caller
// that is alone in its group moves into a group below it. Groups of processes that died
// without removing them are removed by the next.
//
// Thread-safety: slots are independent of each other; each is used by one thread at a
// time.
#ifndef PACE_SANDBOX_CONTROL_GROUPS_H_
#define PACE_SANDBOX_CONTROL_GROUPS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_descriptor.h"

namespace pace {

// Where the caller's groups are: absolute folders, empty where there is none.
struct OwnGroups {
  std::string memory{};
  std::string processes{};
  std::string processor{};
  std::string unified{};  // v2: all at once
};
// From the texts of /proc/self/cgroup and /proc/self/mountinfo.
OwnGroups FindOwnGroups(std::string_view memberships, std::string_view mounts);

// The files of the groups; a test gives a tree of its own.
class GroupFiles {
 public:
  virtual ~GroupFiles() = default;
  virtual bool Make(const std::string& folder) = 0;
  virtual void Remove(const std::string& folder) = 0;
  virtual std::vector<std::string> FoldersIn(const std::string& folder) = 0;
  virtual FileDescriptor Open(const std::string& path, int flags) = 0;

  // Empty where it cannot be read.
  std::string Read(const std::string& path);
  bool Write(const std::string& path, std::string_view text);
};
// The kernel's.
GroupFiles& KernelGroupFiles();

class ControlGroups {
 public:
  // Null where groups cannot be had: then the program's first process watches its
  // memory. Borrows `files`.
  static std::unique_ptr<ControlGroups> Make(const OwnGroups& own, GroupFiles& files,
                                             int64_t num_slots, int64_t max_processes);
  // Of this process.
  static std::unique_ptr<ControlGroups> Make(int64_t num_slots, int64_t max_processes);
  ~ControlGroups();
  ControlGroups(const ControlGroups&) = delete;
  ControlGroups& operator=(const ControlGroups&) = delete;

  // Before a program enters the slot. The group may hold a little more than that, for
  // the processes of ours in it. False where the kernel refuses.
  bool SetMemory(int64_t slot, int64_t bytes);
  // The membership files of the slot; they live as long as this object.
  std::vector<int> Memberships(int64_t slot) const;
  // The file that counts processes killed for memory; it lives as long as this object.
  int MemoryEvents(int64_t slot) const;

  // The most memory the slot ever held; 0 where this kernel does not say.
  int64_t PeakMemory(int64_t slot) const;
  bool bounds_processor() const { return bounds_processor_; }
  bool is_unified() const { return unified_; }

  // What the group of a slot holds beyond its program's limit at most.
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
