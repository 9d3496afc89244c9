// ChildSetup: the steps of an isolated process between clone and exec.
//
// The constructor may allocate. RunInChild runs in a copy of a multi-threaded process in which a
// lock may be held forever, so it only makes plain system calls. It never returns: it executes
// the program, or writes errno and the step's name to the report pipe and exits.
#ifndef PACE_SANDBOX_CHILD_SETUP_H_
#define PACE_SANDBOX_CHILD_SETUP_H_

#include <sys/types.h>

#include <string>

#include "sandbox/root_plan.h"

namespace pace {

struct IsolatedProcessOptions;

// The identity of the process outside of its namespaces.
struct ChildIdentity {
  bool as_root = false;    // the caller may make namespaces without a user namespace
  std::string user_map{};  // for its user namespace, where it needs one
  std::string group_map{};
};
ChildIdentity PlanChildIdentity(bool isolated);

class ChildSetup {
 public:
  // Borrows all three.
  ChildSetup(int report, const IsolatedProcessOptions& options, const ChildIdentity& identity)
      : report_(report), options_(options), identity_(identity) {}

  [[noreturn]] void RunInChild(char* const* arguments, char* const* environment);

 private:
  [[noreturn]] void GiveUp(const char* step) const;
  void Require(bool done, const char* step) const {
    if (!done) GiveUp(step);
  }
  void WriteFile(const char* path, const char* text, size_t size, int flags,
                 const char* step) const;
  void MapUser() const;
  void EnterRoot() const;
  void Do(const RootStep& step) const;
  void BecomeNobody() const;
  void MoveDescriptors();
  void ResetSignals() const;

  int report_;  // moves when descriptors are renumbered
  const IsolatedProcessOptions& options_;
  const ChildIdentity& identity_;
};

}  // namespace pace

#endif  // PACE_SANDBOX_CHILD_SETUP_H_
