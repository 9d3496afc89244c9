// Signals as questions instead of an end.
//
// Interrupt: Ctrl-C for an interactive command. While one exists, SIGINT ends nothing and
// interrupts no call; it makes descriptor() readable until Take is called. So a wait that
// also polls the descriptor cannot miss it, whichever thread got the signal.
//
// StopSignals: a request to save and end, for a command that runs for long. While one
// exists, the first SIGINT, SIGTERM or SIGHUP is remembered for signal() to tell. Another
// one ends the process at once with exit code 128 + its number; a SIGTERM or SIGHUP within
// two seconds of the first is taken for the same request, since a closing session and
// service managers send both. A signal that was ignored before (nohup) stays ignored.
// SIGXFSZ and SIGPIPE end nothing either: the write they are about fails and says why.
//
// At most one of each exists at a time. Thread-safety: none, but signals may reach any
// thread.
#ifndef PACE_TERMINAL_INTERRUPT_H_
#define PACE_TERMINAL_INTERRUPT_H_

#include <array>
#include <csignal>
#include <string>

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

class StopSignals {
 public:
  // What a command returns that was asked to stop, and saved.
  static constexpr int kExitCode = 3;

  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The first that came; 0 while none has.
  int signal() const;
  // "SIGTERM"; empty while none has come.
  std::string name() const;

 private:
  static constexpr std::array<int, 5> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGXFSZ, SIGPIPE};
  std::array<struct sigaction, kSignals.size()> before_ = {};
};

}  // namespace pace

#endif  // PACE_TERMINAL_INTERRUPT_H_
