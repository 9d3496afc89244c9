// LineFile appends JSON lines to a file, fast: one buffer, one write per
// quarter megabyte, always whole lines.
//
//   JsonWriter json = file.Begin();
//   json.Put("step", 7);
//   Status status = file.End();
//
// With a limit the file is continued in parts: FILE, FILE.1, FILE.2, ... each closed once
// it has reached the limit, at the end of a line. OpenRecord (run_files.h) reads them as
// one.
//
// The first error sticks: nothing more is written, and status() returns it.
// Thread-safety: none.
#ifndef PACE_RECORD_LINE_FILE_H_
#define PACE_RECORD_LINE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/json_writer.h"
#include "core/status.h"

namespace pace {

class LineFile {
 public:
  LineFile() = default;  // takes no lines until Open
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Creates the file, or empties it; with `must_be_new` an existing one is an error.
  Status Open(const std::string& path, bool must_be_new);
  // Goes on after what the file holds; `full_parts` are the sizes of the parts before the
  // one to append to.
  Status OpenToAppend(const std::string& path, std::vector<int64_t> full_parts = {});
  // From here on a part ends once it holds this many bytes; 0 = never.
  void SetLimit(int64_t num_bytes) { limit_ = num_bytes; }
  bool is_open() const { return file_ != nullptr; }

  // From here on every line is written out at once, so that it can be watched.
  void WriteOutEveryLine() { every_line_ = true; }

  // One object: put keys into the writer, then End.
  JsonWriter Begin() {
    JsonWriter json(buffer_);
    json.BeginObject();
    return json;
  }
  Status End();

  // A ready line, without its newline.
  Status Line(std::string_view text);

  // Writes out what is buffered, so that others can read it.
  Status WriteOutAll();
  // Writes out what is buffered and has the disk keep it. Returns the size of every part.
  Result<std::vector<int64_t>> FlushToDisk();
  // Writes out what is buffered and closes the file.
  Status Close();
  const Status& status() const { return status_; }

 private:
  Status OpenPart(WriteMode mode);
  void WriteOut();
  void BeginNextPart();
  Status EndLine();

  std::string path_;                 // of the first part
  std::vector<int64_t> full_parts_;  // sizes of the parts before the open one
  int64_t limit_ = 0;
  std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  int64_t num_bytes_ = 0;  // in the open part; the buffer not counted
  bool every_line_ = false;
  Status status_;
};

// The name of a file's part: the file itself, then FILE.1, FILE.2, ...
std::string PartName(const std::string& path, size_t part);

}  // namespace pace

#endif  // PACE_RECORD_LINE_FILE_H_
