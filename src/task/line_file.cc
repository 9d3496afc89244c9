#include "task/line_file.h"

#include "core/line_reader.h"
#include "core/utf8.h"
#include "task/parquet_file.h"

namespace pace {
namespace {

Status TakeLine(std::string_view line, int64_t number, const LineTaker& take) {
  if (number == 1) line = WithoutByteOrderMark(line);
  const bool is_blank = line.find_first_not_of(" \t\r") == std::string_view::npos;
  return is_blank ? Status::Ok() : take(line, number);
}

}  // namespace

Status ReadLines(const std::string& path, const std::string& python, const LineTaker& take) {
  if (path.ends_with(".parquet")) {
    return ReadParquet(path, python, [&](std::string_view line, int64_t number) {
      return TakeLine(line, number, take);
    });
  }
  PACE_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path, kMaxDataLineBytes));
  while (true) {
    PACE_ASSIGN_OR_RETURN(const bool more, lines.Next());
    if (!more) return Status::Ok();
    PACE_RETURN_IF_ERROR(TakeLine(lines.line(), lines.number(), take));
  }
}

Status CutLines(std::string_view text, const std::string& name, const LineTaker& take) {
  return ForEachLine(text, [&](std::string_view line, int64_t number) {
    if (line.size() > kMaxDataLineBytes) {
      return InvalidArgument(name, ":", number, ": longer than ", kMaxDataLineBytes,
                             " bytes (one JSON object per line)");
    }
    return TakeLine(line, number, take);
  });
}

}  // namespace pace
