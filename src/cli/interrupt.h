// Interrupt: Ctrl-C as a question instead of an end.
//
// While one exists, SIGINT ends nothing and interrupts no call; it makes
// descriptor() readable until Take is called. So a wait that also polls the
// descriptor cannot miss it, whichever thread got the signal. At most one exists
// at a time.
// Thread-safety: none.
#ifndef PACE_CLI_INTERRUPT_H_
#define PACE_CLI_INTERRUPT_H_

#include <csignal>

namespace pace {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  int descriptor() const { return pipe_[0]; }
  // Whether SIGINT came since the last call.
  bool Take();

 private:
  int pipe_[2] = {-1, -1};  // the handler writes, Take reads
  struct sigaction before_ = {};
};

}  // namespace pace

#endif  // PACE_CLI_INTERRUPT_H_
