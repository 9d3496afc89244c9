// LineReader reads a file line by line, in bounded memory.
//
//   PACE_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
//   while (true) {
//     PACE_ASSIGN_OR_RETURN(const bool more, lines.Next());
//     if (!more) break;
//     PACE_RETURN_IF_ERROR(lines.Locate(Use(lines.line())));
//   }
//
// Thread-safety: none.
#ifndef PACE_CORE_LINE_READER_H_
#define PACE_CORE_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/file.h"
#include "core/status.h"

namespace pace {

// LineBuffer cuts bytes that arrive in blocks into lines.
class LineBuffer {
 public:
  // Room for the next block; Filled tells how many bytes of it were read.
  std::span<char> Room(size_t num_bytes);
  void Filled(size_t num_bytes);

  // The next line without its '\n', valid until the next Room; none until more bytes come.
  std::optional<std::string_view> Next();
  // What follows the last '\n', taken out; none if that is empty.
  std::optional<std::string_view> Rest();
  // Bytes of a line whose end has not come yet.
  size_t pending() const { return end_ - begin_; }

 private:
  std::string buffer_;
  size_t begin_ = 0;    // of what was not handed out yet
  size_t scanned_ = 0;  // no '\n' between begin_ and here
  size_t end_ = 0;      // of what was read
};

class LineReader {
 public:
  // The name of part 1, 2, ... of a file that is continued in others; empty = none.
  using PartName = std::function<std::string(size_t part)>;

  static constexpr size_t kMaxLineBytes = size_t{64} << 20;

  // A line of more than `max_line_bytes` is an error.
  static Result<LineReader> Open(const std::string& path, size_t max_line_bytes = kMaxLineBytes,
                                 PartName part_name = {});

  // Moves to the next line; false at the end of the file.
  Result<bool> Next();

  // The line Next found, without its '\n'; valid until the next call.
  std::string_view line() const { return line_; }
  // From 1.
  int64_t number() const { return number_; }
  // Whether that line ended in '\n'. A last line without it may have been cut off.
  bool complete() const { return complete_; }

  // "FILE:LINE", for errors about the line Next found.
  std::string Place() const;
  // The error with that place in front. About a last line without '\n' it adds that the
  // file ends there.
  Status Locate(const Status& error) const;

 private:
  LineReader(const std::string& path, std::unique_ptr<ReadableFile> file, size_t max_line_bytes,
             PartName part_name);
  bool OpenNextPart();

  std::string path_;  // of the part being read
  std::unique_ptr<ReadableFile> file_;
  size_t max_line_bytes_;
  PartName part_name_;
  size_t part_ = 0;
  LineBuffer buffer_;
  std::string_view line_;
  int64_t number_ = 0;
  bool complete_ = true;
};

// Calls take(line, number) for every line of a text, numbers from 1; stops at the first
// error.
Status ForEachLine(std::string_view text,
                   const std::function<Status(std::string_view line, int64_t number)>& take);

}  // namespace pace

#endif  // PACE_CORE_LINE_READER_H_
