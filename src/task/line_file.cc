#include "task/line_file.h"

#include <filesystem>
#include <fstream>

#include "core/utf8.h"

namespace pace {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Cuts blocks of a text into its lines.
class LineCutter {
 public:
  LineCutter(const std::string& name, const LineTaker& take) : name_(name), take_(take) {}

  // Hands on every line that ends in `block`; keeps the rest.
  Status Feed(std::string_view block) {
    size_t newline = 0;
    while ((newline = block.find('\n')) != std::string_view::npos) {
      const std::string_view head = block.substr(0, newline);
      block.remove_prefix(newline + 1);
      if (rest_.empty()) {
        PACE_RETURN_IF_ERROR(Take(head));
      } else {
        rest_ += head;
        PACE_RETURN_IF_ERROR(Take(rest_));
        rest_.clear();
      }
    }
    rest_ += block;
    // An endless line must not fill the memory.
    return rest_.size() > kMaxDataLineBytes ? Take(rest_) : Status::Ok();
  }

  Status Finish() { return rest_.empty() ? Status::Ok() : Take(rest_); }

 private:
  Status Take(std::string_view line) {
    if (++number_ == 1) line = WithoutByteOrderMark(line);
    if (line.size() > kMaxDataLineBytes) {
      return InvalidArgument(name_, ":", number_, ": a line of more than ", kMaxDataLineBytes,
                             " bytes");
    }
    return IsBlank(line) ? Status::Ok() : take_(line, number_);
  }

  const std::string& name_;
  const LineTaker& take_;
  int64_t number_ = 0;
  std::string rest_;
};

}  // namespace

Status ReadLines(const std::string& path, const LineTaker& take) {
  if (path.ends_with(".parquet")) {
    return InvalidArgument(
        path,
        ": is parquet: convert it first (scripts/parquet_to_jsonl.py FILE.parquet "
        "> FILE.jsonl)");
  }
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(path, error);
  std::ifstream file(path, std::ios::binary);
  if (is_folder || !file) return NotFound(path, ": cannot be read");
  LineCutter lines(path, take);
  std::string block(kBlockBytes, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    const auto num_bytes = static_cast<size_t>(file.gcount());
    PACE_RETURN_IF_ERROR(lines.Feed(std::string_view(block).substr(0, num_bytes)));
  }
  if (file.bad()) return Unavailable(path, ": reading failed");
  return lines.Finish();
}

Status CutLines(std::string_view text, const std::string& name, const LineTaker& take) {
  LineCutter lines(name, take);
  PACE_RETURN_IF_ERROR(lines.Feed(text));
  return lines.Finish();
}

}  // namespace pace
