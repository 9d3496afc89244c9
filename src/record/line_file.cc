#include "record/line_file.h"

#include <utility>

namespace pace {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 18;

}  // namespace

// A run that was not finished keeps what it can.
LineFile::~LineFile() {
  (void)Close();
}

Status LineFile::Open(const std::string& path, bool must_be_new) {
  path_ = path;
  return OpenPart(must_be_new ? WriteMode::kNew : WriteMode::kReplace);
}

Status LineFile::OpenToAppend(const std::string& path, std::vector<int64_t> full_parts) {
  path_ = path;
  full_parts_ = std::move(full_parts);
  num_bytes_ = Files::Default().Stat(PartName(path, full_parts_.size())).num_bytes;
  return OpenPart(WriteMode::kAppend);
}

Status LineFile::OpenPart(WriteMode mode) {
  Result<std::unique_ptr<WritableFile>> file =
      Files::Default().OpenToWrite(PartName(path_, full_parts_.size()), mode);
  if (!file.ok()) return status_ = file.status();
  file_ = std::move(*file);
  buffer_.reserve(kFlushBytes + (kFlushBytes >> 3));
  return Status::Ok();
}

Status LineFile::End() {
  buffer_ += "}\n";
  return EndLine();
}

Status LineFile::Line(std::string_view text) {
  buffer_ += text;
  buffer_ += '\n';
  return EndLine();
}

Status LineFile::EndLine() {
  if (buffer_.size() >= kFlushBytes || every_line_) WriteOut();
  return status_;
}

void LineFile::WriteOut() {
  if (file_ == nullptr || buffer_.empty()) return;
  if (status_.ok()) status_ = file_->Append(buffer_);
  num_bytes_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
  if (limit_ > 0 && num_bytes_ >= limit_ && status_.ok()) BeginNextPart();
}

void LineFile::BeginNextPart() {
  status_ = file_->FlushToDisk();
  file_.reset();
  full_parts_.push_back(num_bytes_);
  num_bytes_ = 0;
  if (status_.ok()) status_ = OpenPart(WriteMode::kReplace);
}

Status LineFile::WriteOutAll() {
  WriteOut();
  return status_;
}

Result<std::vector<int64_t>> LineFile::FlushToDisk() {
  WriteOut();
  if (file_ != nullptr && status_.ok()) status_ = file_->FlushToDisk();
  if (!status_.ok()) return status_;
  std::vector<int64_t> sizes = full_parts_;
  sizes.push_back(num_bytes_);
  return sizes;
}

Status LineFile::Close() {
  if (file_ == nullptr) return status_;
  limit_ = 0;  // nothing follows
  WriteOut();
  const Status closed = file_->Close();
  file_.reset();
  if (status_.ok()) status_ = closed;
  return status_;
}

std::string PartName(const std::string& path, size_t part) {
  return part == 0 ? path : Concat(path, ".", part);
}

}  // namespace pace
