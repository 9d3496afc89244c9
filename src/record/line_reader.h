// LineReader hands out a text file line by line, with bounded memory. A run's record that
// goes on in parts (FILE, FILE.1, ..., see line_file.h) is read as one.
//
//   Result<LineReader> lines = LineReader::Open(path);
//   while (true) {
//     Result<bool> more = lines->Next();
//     if (!more.ok()) return more.status();
//     if (!*more) break;
//     Use(lines->line());
//   }
//
// Thread-safety: none.
#ifndef PACE_RECORD_LINE_READER_H_
#define PACE_RECORD_LINE_READER_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"

namespace pace {

class LineReader {
 public:
  // No line of a file we read is longer; a longer one is an error.
  static constexpr size_t kMaxLineBytes = size_t{64} << 20;

  static Result<LineReader> Open(const std::string& path);

  // Moves to the next line; false at the end of the file.
  Result<bool> Next();

  // The line Next found, without its newline; valid until the next call.
  std::string_view line() const { return line_; }
  // Whether that line ended in a newline. A last line without one may have
  // been cut off.
  bool complete() const { return complete_; }

  // "FILE:LINE", for errors about the line Next found.
  std::string Place() const;
  // The error with that place in front. About a last line without a newline
  // it adds that the file ends there.
  Status Locate(const Status& error) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  LineReader(const std::string& path, std::FILE* file)
      : path_(path), first_path_(path), file_(file) {}
  // Goes on with the file's next part, if it has one.
  bool OpenNextPart();
  // Reads more behind what is kept; false at the end of the file.
  Result<bool> Fill();

  std::string path_;  // of the part being read
  std::string first_path_;
  size_t part_ = 0;
  std::unique_ptr<std::FILE, Close> file_;
  std::string buffer_;
  size_t begin_ = 0;  // of what was not handed out yet
  std::string_view line_;
  int64_t line_number_ = 0;
  bool complete_ = true;
};

}  // namespace pace

#endif  // PACE_RECORD_LINE_READER_H_
