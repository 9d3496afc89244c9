// TensorBoardWriter writes scalars as an event file that TensorBoard reads.
//
//   Result<TensorBoardWriter> board = TensorBoardWriter::Create(directory, 0);
//   Status added = board->Add(step, time, std::vector<Scalar>{{"train/reward", 0.5}});
//   Status closed = board->Close();
//
// The file is events.out.tfevents.START.pace: records of length, checksum and
// an Event in protobuf's encoding, of which three fields are written by hand;
// no protobuf library may enter a process with LibTorch. Times are the run's own
// (START plus seconds), so a virtual run gives the same bytes twice.
// Every Add reaches the file: a run can be watched.
//
// Thread-safety: none. The first error sticks.
#ifndef PACE_RECORD_TENSORBOARD_WRITER_H_
#define PACE_RECORD_TENSORBOARD_WRITER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "core/file.h"
#include "core/status.h"

namespace pace {

using Scalar = std::pair<std::string_view, double>;

class TensorBoardWriter {
 public:
  // Begins the file, or begins it anew. `start` counts seconds since 1970, or is
  // 0 under a virtual clock.
  static Result<TensorBoardWriter> Create(const std::string& directory, int64_t start);
  // Continues the file that Create and Add wrote.
  static Result<TensorBoardWriter> Append(const std::string& directory, int64_t start);
  // The file's name, without its directory.
  static std::string FileName(int64_t start);

  // One event. Scalars that are not finite are left out: TensorBoard cannot
  // draw them.
  Status Add(int64_t step, Seconds time, std::span<const Scalar> scalars);
  // Has the disk keep what was added. Returns the file's size.
  Result<int64_t> FlushToDisk();
  Status Close();

 private:
  TensorBoardWriter(int64_t start, int64_t num_bytes, std::unique_ptr<WritableFile> file)
      : start_(start), num_bytes_(num_bytes), file_(std::move(file)) {}
  Status WriteRecord(std::string_view event);

  int64_t start_;
  int64_t num_bytes_;
  std::unique_ptr<WritableFile> file_;  // null once closed
  Status status_;
};

}  // namespace pace

#endif  // PACE_RECORD_TENSORBOARD_WRITER_H_
