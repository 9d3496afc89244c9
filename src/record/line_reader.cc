#include "record/line_reader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "record/line_file.h"
#include "record/run_files.h"

namespace pace {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;

std::FILE* OpenUnbuffered(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file != nullptr) std::setvbuf(file, nullptr, _IONBF, 0);  // we buffer ourselves
  return file;
}

}  // namespace

Result<LineReader> LineReader::Open(const std::string& path) {
  std::FILE* const file = OpenUnbuffered(path);
  if (file == nullptr) {
    const std::string why = std::strerror(errno);
    return errno == ENOENT ? NotFound(path, ": ", why) : Unavailable(path, ": ", why);
  }
  return LineReader(path, file);
}

bool LineReader::OpenNextPart() {
  if (!IsRecordFile(std::filesystem::path(first_path_).filename().string())) return false;
  const std::string next = PartName(first_path_, part_ + 1);
  std::FILE* const file = OpenUnbuffered(next);
  if (file == nullptr) return false;
  file_.reset(file);
  path_ = next;
  ++part_;
  line_number_ = 0;
  return true;
}

Result<bool> LineReader::Fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t kept = buffer_.size();
  buffer_.resize(kept + kReadBytes);
  const size_t num_read = std::fread(buffer_.data() + kept, 1, kReadBytes, file_.get());
  const int error = errno;
  buffer_.resize(kept + num_read);
  if (num_read == 0 && std::ferror(file_.get()) != 0) {
    return Unavailable(path_, ": ", std::strerror(error));
  }
  return num_read > 0;
}

Result<bool> LineReader::Next() {
  size_t searched = begin_;
  while (true) {
    const size_t newline = buffer_.find('\n', searched);
    const size_t end = newline == std::string::npos ? buffer_.size() : newline;
    if (end - begin_ > kMaxLineBytes) {
      ++line_number_;
      return InvalidArgument(Place(), ": longer than ", kMaxLineBytes,
                             " bytes (one JSON object per line)");
    }
    if (newline != std::string::npos) {
      line_ = std::string_view(buffer_).substr(begin_, newline - begin_);
      begin_ = newline + 1;
      complete_ = true;
      ++line_number_;
      return true;
    }
    const size_t pending = buffer_.size() - begin_;
    PACE_ASSIGN_OR_RETURN(const bool more, Fill());
    searched = pending;
    if (more) continue;
    if (pending == 0 && OpenNextPart()) continue;
    if (pending == 0) return false;
    line_ = std::string_view(buffer_).substr(0, pending);
    begin_ = pending;
    complete_ = false;
    ++line_number_;
    return true;
  }
}

std::string LineReader::Place() const {
  return Concat(path_, ":", line_number_);
}

Status LineReader::Locate(const Status& error) const {
  if (error.ok() || complete_) return error.At(Place());
  return DataLoss(Place(), ": ", error.message(), " (the file ends within this line)");
}

}  // namespace pace
