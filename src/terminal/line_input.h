// LineInput: the lines of a file or of stdin, as they come.
//
// Commands that answer line by line process the available lines and read more when they are idle:
// a program at the other end of a pipe may wait for an answer before it sends the next line.
//
//   Result<LineInput> input = LineInput::Open("");
//   Result<LineInput::Read> read = input->Next(/*wait=*/idle, line);
//
// Thread-safety: none.
#ifndef PACE_TERMINAL_LINE_INPUT_H_
#define PACE_TERMINAL_LINE_INPUT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"
#include "core/line_reader.h"
#include "core/status.h"

namespace pace {

class LineInput {
 public:
  enum class Read {
    kLine,    // `line` holds the next one, without its end
    kNotYet,  // nothing is available yet; with `wait`: it was woken
    kEnd,
  };

  // A file; stdin for "" and "-".
  static Result<LineInput> Open(const std::string& path);
  // The last line may lack its end, the first may begin with a byte order mark. An error: it cannot
  // be read, or a line is longer than 64 MiB.
  Result<Read> Next(bool wait, std::string& line);
  // A wait also ends when this descriptor becomes readable.
  void set_wake(int descriptor) { wake_ = descriptor; }
  // "stdin:3", of the line that Next gave last.
  std::string where() const;

 private:
  LineInput(std::string name, FileDescriptor file)
      : name_(std::move(name)), file_(std::move(file)) {}
  bool TakeLine(std::string& line);
  // Reads some bytes. False: none, at the end, or none yet.
  Result<bool> Fill(bool wait);

  std::string name_;
  FileDescriptor file_;  // none = stdin
  int wake_ = -1;        // poll passes over -1
  LineBuffer buffer_;
  bool at_end_ = false;
  int64_t number_ = 0;
};

// Appends the answer to `line`, with its line end, to `out`.
using LineAnswer = std::function<Status(std::string_view line, std::string& out)>;

// Answers every line of the input with one line on stdout, in order; before it waits for
// input it writes the answers so far. Empty lines are skipped. Stops at the first error,
// which names the line; the lines before it are answered.
Status AnswerLines(LineInput& input, const LineAnswer& answer);

}  // namespace pace

#endif  // PACE_TERMINAL_LINE_INPUT_H_
