// LineInput: the lines of a file or of stdin, as they come.
//
// Commands that answer line by line work on the lines they have and read more only when
// they are idle: a program at the other end of a pipe may wait for the answer before it
// sends the next line.
//
//   Result<LineInput> input = LineInput::Open("");
//   Result<LineInput::Read> read = input->Next(/*wait=*/idle, line);
//
// Thread-safety: none.
#ifndef PACE_TERMINAL_LINE_INPUT_H_
#define PACE_TERMINAL_LINE_INPUT_H_

#include <cstdint>
#include <string>

#include "core/file_descriptor.h"
#include "core/line_reader.h"
#include "core/status.h"

namespace pace {

class LineInput {
 public:
  enum class Read {
    kLine,    // `line` holds the next one, without its end
    kNotYet,  // no line has come yet; with `wait`: it was woken
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

}  // namespace pace

#endif  // PACE_TERMINAL_LINE_INPUT_H_
