#include "record/line_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace pace {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 18;

}  // namespace

// A run that was not finished keeps what it can.
LineFile::~LineFile() {
  if (file_ == nullptr) return;
  limit_ = 0;
  WriteOut();
  std::fclose(file_);
}

Status LineFile::Open(const std::string& path, bool must_be_new) {
  return OpenAs(path, must_be_new ? "wbxe" : "wbe", "created");
}

Status LineFile::OpenToAppend(const std::string& path, std::vector<int64_t> full_parts) {
  full_parts_ = std::move(full_parts);
  PACE_RETURN_IF_ERROR(OpenAs(path, "abe", "opened"));
  // Until the first write an appending stream may stand at the file's beginning.
  const bool at_end = std::fseek(file_, 0, SEEK_END) == 0;
  num_bytes_ = at_end ? static_cast<int64_t>(std::ftell(file_)) : -1;
  if (num_bytes_ < 0) status_ = Unavailable(path, ": cannot be read: ", std::strerror(errno));
  return status_;
}

Status LineFile::OpenAs(const std::string& path, const char* mode, const char* failure) {
  path_ = path;
  const std::string part = PartName(path, full_parts_.size());
  file_ = std::fopen(part.c_str(), mode);
  if (file_ == nullptr) {
    status_ = Unavailable(part, ": cannot be ", failure, ": ", std::strerror(errno));
    return status_;
  }
  std::setvbuf(file_, nullptr, _IONBF, 0);  // we buffer ourselves
  buffer_.reserve(kFlushBytes + (kFlushBytes >> 3));
  return Status::Ok();
}

Status LineFile::End() {
  buffer_ += "}\n";
  return Ended(/*whole_line=*/true);
}

Status LineFile::Line(std::string_view text) {
  buffer_ += text;
  buffer_ += '\n';
  return Ended(/*whole_line=*/true);
}

Status LineFile::Text(std::string_view text) {
  buffer_ += text;
  return Ended(/*whole_line=*/false);
}

Status LineFile::Ended(bool whole_line) {
  if (buffer_.size() >= kFlushBytes || (every_line_ && whole_line)) WriteOut();
  return status_;
}

void LineFile::WriteOut() {
  if (file_ == nullptr) return;  // the next part could not be opened
  const bool whole = std::fwrite(buffer_.data(), 1, buffer_.size(), file_) == buffer_.size();
  if (!whole && status_.ok()) {
    status_ =
        Unavailable(path_, ": cannot be written: ", std::strerror(errno), " (is the disk full?)");
  }
  num_bytes_ += static_cast<int64_t>(buffer_.size());
  const bool ends_line = !buffer_.empty() && buffer_.back() == '\n';
  buffer_.clear();
  if (limit_ > 0 && num_bytes_ >= limit_ && ends_line && status_.ok()) BeginNextPart();
}

void LineFile::BeginNextPart() {
  status_ = FlushFile(file_, path_);
  std::fclose(file_);
  file_ = nullptr;
  full_parts_.push_back(num_bytes_);
  num_bytes_ = 0;
  if (status_.ok()) status_ = OpenAs(path_, "wbe", "created");
}

Status LineFile::WriteOutAll() {
  if (!buffer_.empty()) WriteOut();
  return status_;
}

Result<std::vector<int64_t>> LineFile::FlushToDisk() {
  if (file_ != nullptr) {
    WriteOut();
    const Status synced = file_ == nullptr ? status_ : FlushFile(file_, path_);
    if (status_.ok()) status_ = synced;
  }
  if (!status_.ok()) return status_;
  std::vector<int64_t> sizes = full_parts_;
  sizes.push_back(num_bytes_);
  return sizes;
}

std::string PartName(const std::string& path, size_t part) {
  return part == 0 ? path : Concat(path, ".", part);
}

Status LineFile::Close() {
  if (file_ == nullptr) return status_;
  limit_ = 0;  // nothing follows
  WriteOut();
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  if (!closed && status_.ok()) {
    status_ = Unavailable(path_, ": cannot be written: ", std::strerror(errno));
  }
  return status_;
}

Status FlushFile(std::FILE* file, const std::string& path) {
  if (fsync(fileno(file)) == 0 || errno == EINVAL || errno == EROFS) return Status::Ok();
  return Unavailable(path, ": cannot be written: ", std::strerror(errno), " (is the disk full?)");
}

}  // namespace pace
