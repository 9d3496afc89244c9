#include "record/line_file.h"

#include <cerrno>
#include <cstring>

namespace pace {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 18;

}  // namespace

// A run that was not finished keeps what it can.
LineFile::~LineFile() {
  if (file_ == nullptr) return;
  Flush();
  std::fclose(file_);
}

Status LineFile::Open(const std::string& path, bool must_be_new) {
  path_ = path;
  file_ = std::fopen(path.c_str(), must_be_new ? "wbx" : "wb");
  if (file_ == nullptr) {
    status_ = Unavailable(path, ": cannot be created: ", std::strerror(errno));
    return status_;
  }
  std::setvbuf(file_, nullptr, _IONBF, 0);  // we buffer ourselves
  buffer_.reserve(kFlushBytes + (kFlushBytes >> 3));
  return Status::Ok();
}

Status LineFile::End() {
  buffer_ += "}\n";
  if (buffer_.size() >= kFlushBytes) Flush();
  return status_;
}

Status LineFile::Line(std::string_view text) {
  buffer_ += text;
  buffer_ += '\n';
  if (buffer_.size() >= kFlushBytes) Flush();
  return status_;
}

Status LineFile::Text(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kFlushBytes) Flush();
  return status_;
}

void LineFile::Flush() {
  const bool whole = std::fwrite(buffer_.data(), 1, buffer_.size(), file_) == buffer_.size();
  if (!whole && status_.ok()) {
    status_ =
        Unavailable(path_, ": cannot be written: ", std::strerror(errno), " (is the disk full?)");
  }
  buffer_.clear();
}

Status LineFile::Close() {
  if (file_ == nullptr) return status_;
  Flush();
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  if (!closed && status_.ok()) {
    status_ = Unavailable(path_, ": cannot be written: ", std::strerror(errno));
  }
  return status_;
}

}  // namespace pace
