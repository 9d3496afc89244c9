#include "cli/interrupt.h"

namespace pace {
namespace {

// A signal handler has nowhere else to leave word.
volatile std::sig_atomic_t interrupted = 0;

void Remember(int) {
  interrupted = 1;
}

}  // namespace

Interrupt::Interrupt() {
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = Remember;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_, nullptr);
}

bool Interrupt::Take() {
  const bool taken = interrupted != 0;
  interrupted = 0;
  return taken;
}

}  // namespace pace
