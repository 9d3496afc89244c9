// Peer: a Python script as a child process that answers requests, one JSON line each.
//
// A peer loads its packages and weights once and then answers request after request, so
// that its measurements can alternate with ours. Scripts are compiled into the program.
// Standard error is discarded; the last line of a script that fails is in the error.
//
//   Result<Peer> peer = Peer::Start("decode_peer.py");
//   Result<PeerAnswer> answer = peer->Ask(R"({"batch": 8, ...})", {"seconds"});
//   const double seconds = answer->numbers.at("seconds");
//
// Thread-safety: none, but RunProgram may run on several threads.
#ifndef PACE_BENCH_PEER_H_
#define PACE_BENCH_PEER_H_

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/status.h"

namespace pace {

// The Python that has the packages to compare with: $PACE_PYTHON, else the one that this
// program was built with, else python3.
std::string PeerPython();

// The script of that file name. REQUIRES: this folder has it
std::string PeerScript(std::string_view file);

// Runs a program to its end and returns what it prints. Its standard input is the file at
// `input_path`. Unavailable: it cannot start, fails, or takes longer than `timeout`.
Result<std::string> RunProgram(const std::vector<std::string>& words, const std::string& input_path,
                               Seconds timeout);

// A JSON object of numbers, texts and one array: rows of numbers, or one row.
struct PeerAnswer {
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> texts;
  std::vector<std::vector<double>> rows;

  // `script` is named in errors. All of `required` must be among the numbers.
  static Result<PeerAnswer> Parse(const std::string& script, std::string_view json,
                                  std::initializer_list<std::string_view> required = {});
};

class Peer {
 public:
  // The script runs isolated (-I).
  static Result<Peer> Start(std::string_view script, const std::vector<std::string>& arguments = {},
                            const std::string& python = PeerPython());
  Peer(Peer&&) noexcept;
  Peer& operator=(Peer&&) noexcept;
  ~Peer();  // kills the child if it still runs

  // Sends one line and reads the answer. An error: the peer ended, or took too long.
  Result<PeerAnswer> Ask(std::string_view request,
                         std::initializer_list<std::string_view> required = {});
  // The latest text under the key `version`.
  const std::string& version() const { return version_; }

 private:
  class Process;
  Peer(std::string_view script, std::unique_ptr<Process> process);
  friend Result<std::string> RunProgram(const std::vector<std::string>& words,
                                        const std::string& input_path, Seconds timeout);

  std::string script_;
  std::unique_ptr<Process> process_;
  std::string version_;
};

// What a benchmark reports about a peer: its version, or why it was not measured.
std::string DescriptionOf(const Result<Peer>& peer);

}  // namespace pace

#endif  // PACE_BENCH_PEER_H_
