// ControlGroups: memory and process limits of whole programs, by the kernel.
//
// One group per place, made below the caller's own group and used by one program
// after another; the program's first process joins through a descriptor that it
// is handed. Both hierarchies work, v1 and v2, where the caller's group is
// writable and, in v2, hands its controllers down. Groups of processes that died
// without removing them are removed by the next.
//
// Thread-safety: places are independent of each other; each is used by one
// thread at a time.
#ifndef PACE_TOOLS_CONTROL_GROUPS_H_
#define PACE_TOOLS_CONTROL_GROUPS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/file_descriptor.h"

namespace pace {

// Where the caller's groups are: absolute folders, empty where there is none.
struct OwnGroups {
  std::string memory;
  std::string processes;
  std::string unified;  // v2: both at once
};
// From the texts of /proc/self/cgroup and /proc/self/mountinfo.
OwnGroups FindOwnGroups(std::string_view memberships, std::string_view mounts);

class ControlGroups {
 public:
  // Null where groups cannot be had: limits then hold per process, and the
  // program's first process watches the sum.
  static std::unique_ptr<ControlGroups> Make(int64_t num_places, int64_t max_processes);
  ~ControlGroups();
  ControlGroups(const ControlGroups&) = delete;
  ControlGroups& operator=(const ControlGroups&) = delete;

  // Before a program enters the place. False where the kernel refuses.
  bool SetMemory(int64_t place, int64_t bytes);
  // The membership files of the place; they live as long as this object.
  std::vector<int> Memberships(int64_t place) const;

 private:
  struct Place {
    std::vector<std::string> folders;
    std::vector<FileDescriptor> memberships;
    std::string memory_limit;  // the file
    int64_t memory_bytes = 0;
  };

  ControlGroups() = default;
  bool AddPlace(const OwnGroups& own, int64_t index, int64_t max_processes);

  std::vector<Place> places_;
};

}  // namespace pace

#endif  // PACE_TOOLS_CONTROL_GROUPS_H_
