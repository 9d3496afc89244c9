// Programs: the request, the result, and the interface that our own sandbox and a remote one
// share.
//
//   ProgramRequest request;
//   request.code = "print(6 * 7)";
//   Result<ProgramResult> result = runner.Run(request, {});
//   // result->outcome == ProgramOutcome::kFinished, result->out == "42\n"
//
// Everything that the program does is a ProgramResult. An error Status means that the runner
// failed and nothing is known about the program.
#ifndef PACE_SANDBOX_PROGRAM_H_
#define PACE_SANDBOX_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/file_descriptor.h"
#include "core/status.h"

namespace pace {

struct ProgramFile {
  std::string path;  // relative to the program's working folder, no ".." in it
  std::string content;
};

struct ProgramRequest {
  std::string code{};   // Python source, self-contained
  std::string input{};  // what it reads from stdin
  // None: those of the runner's options.
  std::optional<Seconds> timeout{};
  std::optional<int64_t> memory_bytes{};
  // Written into the working folder before it starts.
  std::vector<ProgramFile> files{};
  // Read back from there afterwards; missing or too large files are left out.
  std::vector<std::string> fetch{};
};

enum class ProgramOutcome {
  kFinished,   // it exited: return_code says how
  kTimeLimit,  // it was killed at its deadline
  kCancelled,  // the caller cancelled
};

struct ProgramResult {
  ProgramOutcome outcome = ProgramOutcome::kFinished;
  // The exit code; -N after signal N. None unless kFinished.
  std::optional<int64_t> return_code{};
  // The first max_output_bytes of each stream, bytes as they came.
  std::string out{};
  std::string error{};
  bool out_cut = false;
  bool error_cut = false;
  Seconds time{0};  // from the program's start to its end
  std::vector<ProgramFile> files{};
};

// Thread-safety: Run may be called from any thread; calls beyond the runner's concurrency wait.
class ProgramRunner {
 public:
  virtual ~ProgramRunner() = default;
  virtual Result<ProgramResult> Run(const ProgramRequest& request,
                                    const Cancellation& cancellation) = 0;
  // One line about the isolation, for the log; may be empty.
  virtual std::string Description() const { return ""; }
};

// Whether a file's path stays inside the working folder.
Status CheckProgramPath(const std::string& path);

// A program's output as the text that SandboxFusion shows.
// UTF-8 is returned unchanged; other bytes become "[DecodeError] " and Python's message for the
// first invalid byte. If the stream was cut, an incomplete character at its end is dropped first.
std::string OutputText(std::string_view bytes, bool cut);

}  // namespace pace

#endif  // PACE_SANDBOX_PROGRAM_H_
