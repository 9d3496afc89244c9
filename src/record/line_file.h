// LineFile appends JSON lines to a file, fast: one buffer, one write per
// quarter megabyte, always whole lines.
//
//   JsonWriter json = file.Begin();
//   json.Put("step", 7);
//   Status status = file.End();
//
// The first error sticks; status() tells it. Thread-safety: none.
#ifndef PACE_RECORD_LINE_FILE_H_
#define PACE_RECORD_LINE_FILE_H_

#include <cstdio>
#include <string>
#include <string_view>

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

  // One object: put keys into the writer, then End.
  JsonWriter Begin() {
    JsonWriter json(buffer_);
    json.BeginObject();
    return json;
  }
  Status End();

  // A ready line, without its newline.
  Status Line(std::string_view text);
  // Any text, as it is.
  Status Text(std::string_view text);

  // Writes out what is buffered and closes the file.
  Status Close();
  const Status& status() const { return status_; }

 private:
  void Flush();

  std::string path_;
  std::FILE* file_ = nullptr;
  std::string buffer_;
  Status status_;
};

}  // namespace pace

#endif  // PACE_RECORD_LINE_FILE_H_
