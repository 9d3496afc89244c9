// Interrupt: Ctrl-C as a question instead of an end.
//
// While one exists, SIGINT makes blocking calls return (EINTR) and is remembered
// until Take asks for it. At most one at a time.
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

  // Whether SIGINT came since the last call.
  bool Take();

 private:
  struct sigaction before_ = {};
};

}  // namespace pace

#endif  // PACE_CLI_INTERRUPT_H_
