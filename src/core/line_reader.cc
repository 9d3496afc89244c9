#include "core/line_reader.h"

#include <algorithm>
#include <utility>

namespace pace {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;

}  // namespace

std::span<char> LineBuffer::Room(size_t num_bytes) {
  buffer_.resize(end_);
  buffer_.erase(0, begin_);
  end_ -= begin_;
  scanned_ -= begin_;
  begin_ = 0;
  buffer_.resize(end_ + num_bytes);
  return std::span(buffer_).subspan(end_);
}

void LineBuffer::Filled(size_t num_bytes) {
  end_ += num_bytes;
}

std::optional<std::string_view> LineBuffer::Next() {
  const std::string_view read = std::string_view(buffer_).substr(0, end_);
  const size_t newline = read.find('\n', scanned_);
  scanned_ = newline == std::string_view::npos ? end_ : newline + 1;
  if (newline == std::string_view::npos) return std::nullopt;
  const std::string_view line = read.substr(begin_, newline - begin_);
  begin_ = scanned_;
  return line;
}

std::optional<std::string_view> LineBuffer::Rest() {
  if (pending() == 0) return std::nullopt;
  const std::string_view rest = std::string_view(buffer_).substr(begin_, pending());
  begin_ = scanned_ = end_;
  return rest;
}

LineReader::LineReader(const std::string& path, std::unique_ptr<ReadableFile> file,
                       size_t max_line_bytes, PartName part_name)
    : path_(path),
      file_(std::move(file)),
      max_line_bytes_(max_line_bytes),
      part_name_(std::move(part_name)) {}

Result<LineReader> LineReader::Open(const std::string& path, size_t max_line_bytes,
                                    PartName part_name) {
  PACE_ASSIGN_OR_RETURN(auto file, Files::Default().OpenToRead(path));
  return LineReader(path, std::move(file), max_line_bytes, std::move(part_name));
}

bool LineReader::OpenNextPart() {
  if (!part_name_) return false;
  std::string next = part_name_(part_ + 1);
  auto file = Files::Default().OpenToRead(next);
  if (!file.ok()) return false;
  file_ = std::move(*file);
  path_ = std::move(next);
  ++part_;
  number_ = 0;
  return true;
}

Result<bool> LineReader::Next() {
  std::optional<std::string_view> line = buffer_.Next();
  complete_ = true;
  while (!line.has_value() && buffer_.pending() <= max_line_bytes_) {
    PACE_ASSIGN_OR_RETURN(const size_t num_read, file_->Read(buffer_.Room(kReadBytes)));
    buffer_.Filled(num_read);
    line = buffer_.Next();
    if (num_read > 0) continue;
    line = buffer_.Rest();
    complete_ = !line.has_value();
    if (!line.has_value() && !OpenNextPart()) return false;
  }
  ++number_;
  if (!line.has_value() || line->size() > max_line_bytes_) {
    return InvalidArgument(Place(), ": longer than ", max_line_bytes_,
                           " bytes (one JSON object per line)");
  }
  line_ = *line;
  return true;
}

std::string LineReader::Place() const {
  return Concat(path_, ":", number_);
}

Status LineReader::Locate(const Status& error) const {
  if (error.ok() || complete_) return error.At(Place());
  return DataLoss(Place(), ": ", error.message(), " (the file ends within this line)");
}

Status ForEachLine(std::string_view text,
                   const std::function<Status(std::string_view line, int64_t number)>& take) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    PACE_RETURN_IF_ERROR(take(text.substr(0, end), number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Status::Ok();
}

}  // namespace pace
