// For tests: programs that reach for what is not theirs, take all they can get, spoil
// what comes after them or will not end; one table.
#ifndef PACE_SANDBOX_HOSTILE_PROGRAMS_H_
#define PACE_SANDBOX_HOSTILE_PROGRAMS_H_

#include <string>
#include <vector>

namespace pace {

enum class HostileEnd {
  kHeld,       // it says "held" and nothing else: all it tried was refused
  kError,      // an error of Python's, return code 1
  kKilled,     // by SIGKILL
  kTimeLimit,  // it would not end
  kCode,       // with `code`
  kAny,        // any result at all
};

struct HostileProgram {
  const char* name;
  HostileEnd end;
  const char* code;
  int return_code = 0;  // of kCode
};

// What each program begins with: system calls by name; refuse(), which tries expressions
// that must raise OSError and says which did not; hoard(), which lets processes take
// memory and waits until all hold it.
std::string HostilePrelude();

// Files, environment, processes, network, the kernel.
std::vector<HostileProgram> ReachingPrograms();
// Memory of one process, processes, time, output, limits.
std::vector<HostileProgram> GreedyPrograms();
// Memory beyond the limit that no single process passes.
std::vector<HostileProgram> HoardingPrograms();
// What the next program might find.
std::vector<HostileProgram> SpoilingPrograms();

}  // namespace pace

#endif  // PACE_SANDBOX_HOSTILE_PROGRAMS_H_
