// PeerProcess: a Python script as a child process that we talk to in lines.
//
// A peer loads its packages and weights once and then answers one request per
// line, so that its measurements can alternate with ours. Scripts are compiled
// into the program. Its standard error is discarded, but for the last lines of
// a script that fails.
//
//   Result<PeerProcess> peer = PeerProcess::Start(PeerPython(), script, {"DIR"}, "");
//   PACE_RETURN_IF_ERROR(peer->Send("{...}"));
//   Result<std::string> answer = peer->ReadLine(Seconds(60));
//
// Thread-safety: none.
#ifndef PACE_BENCH_PEER_PROCESS_H_
#define PACE_BENCH_PEER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/status.h"

namespace pace {

// The Python that has the packages to compare with: $PACE_PYTHON, else the one
// this program was built with, else python3.
std::string PeerPython();

class PeerProcess {
 public:
  // `script` runs isolated (-I) with these arguments. Its standard input is
  // `input_path`, or, where that is empty, what Send writes.
  static Result<PeerProcess> Start(const std::string& python, std::string_view script,
                                   const std::vector<std::string>& arguments,
                                   const std::string& input_path);
  // Kills the child if it still runs.
  ~PeerProcess();
  PeerProcess(PeerProcess&& other) noexcept;
  PeerProcess& operator=(PeerProcess&&) = delete;

  // One line. A peer that is gone is an error.
  Status Send(std::string_view line);
  // Its next line, without the newline. An error: it ended, or took too long.
  Result<std::string> ReadLine(Seconds timeout);
  // All it prints until it ends; it must end with exit code 0.
  Result<std::string> ReadToEnd(Seconds timeout);

 private:
  PeerProcess() = default;
  // More output into buffer_; false at its end.
  Result<bool> Fill(Seconds timeout);
  Status Ended();

  std::string python_;
  pid_t pid_ = 0;
  int input_ = -1;   // the writing end
  int output_ = -1;  // the reading end
  int errors_ = -1;
  std::string buffer_;
};

}  // namespace pace

#endif  // PACE_BENCH_PEER_PROCESS_H_
