// ProgramControl: parses the messages of a program's first process.
//
// Frames are a length (4 bytes, little endian), a kind and a text; zygote.py writes them. The
// process is not trusted: its messages are bounded and checked.
// Thread-safety: none.
#ifndef PACE_SANDBOX_PROGRAM_CONTROL_H_
#define PACE_SANDBOX_PROGRAM_CONTROL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file_descriptor.h"
#include "core/status.h"
#include "sandbox/program.h"

namespace pace {

// The request as the first process reads it.
std::string ProgramRequestText(const ProgramRequest& request, int64_t memory_bytes);

// How the program ended, from the text of its frame.
struct ProgramEnd {
  int64_t return_code = 0;
  Seconds time{0};
  std::vector<ProgramFile> files{};
};
Result<ProgramEnd> ReadProgramEnd(std::string_view text);

class ProgramControl {
 public:
  // Owns its end of the control socket.
  explicit ProgramControl(FileDescriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.get(); }

  // Reads the available messages without waiting. An error: a malformed message.
  Status Receive();

  bool closed() const { return closed_; }
  // The first process's pidfd; -1 until it came.
  int process() const { return process_.get(); }
  bool started() const { return started_; }
  const std::optional<ProgramEnd>& end() const { return end_; }
  // Why the program could not be started.
  const std::optional<std::string>& failure() const { return failure_; }

 private:
  Status TakeFrames();
  Status TakeFrame(char kind, std::string_view text);

  FileDescriptor socket_;
  std::string received_;
  FileDescriptor process_;
  bool closed_ = false;
  bool started_ = false;
  std::optional<ProgramEnd> end_;
  std::optional<std::string> failure_;
};

}  // namespace pace

#endif  // PACE_SANDBOX_PROGRAM_CONTROL_H_
