#include "record/run_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <variant>

#include "record/line_file.h"
#include "record/trace_reader.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 8> kLineFiles = {
    kMetricsFile,  kDecisionsFile,   kTraceFile,     kEventsFile,
    kRolloutsFile, kEvaluationsFile, kResponsesFile, kWarningsFile};

// Whether it is a record of lines, or a later part of one.
bool IsLineFile(std::string_view name) {
  if (IsRecordFile(name)) return true;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || !IsRecordFile(name.substr(0, dot))) return false;
  const std::string_view part = name.substr(dot + 1);
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

Status CheckCut(const std::string& path, int64_t size, bool has_lines) {
  if (size < 0) return InvalidArgument(path, ": size = ", size, ": must be >= 0");
  const FileInfo file = Files::Default().Stat(path);
  if (file.kind == FileKind::kMissing) {
    return DataLoss(path, ": is missing (the run wrote ", size, " bytes of it)");
  }
  if (file.num_bytes < size) {
    return DataLoss(path, ": holds ", file.num_bytes, " bytes, the run wrote ", size,
                    " (it was cut or replaced since)");
  }
  if (!has_lines || size == 0) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  if (mapped.text()[static_cast<size_t>(size) - 1] != '\n') {
    return DataLoss(path, ": no line ends at byte ", size, " (it was replaced since)");
  }
  return Status::Ok();
}

}  // namespace

bool IsRecordFile(std::string_view name) {
  return std::find(kLineFiles.begin(), kLineFiles.end(), name) != kLineFiles.end();
}

Result<LineReader> OpenRecord(const std::string& path) {
  if (!IsRecordFile(std::filesystem::path(path).filename().string())) return LineReader::Open(path);
  return LineReader::Open(path, LineReader::kMaxLineBytes,
                          [path](size_t part) { return PartName(path, part); });
}

std::vector<int64_t> PartSizes(const FileSizes& sizes, const std::string& name) {
  std::vector<int64_t> parts;
  while (true) {
    const auto found = sizes.find(PartName(name, parts.size()));
    if (found == sizes.end()) return parts;
    parts.push_back(found->second);
  }
}

Status CutBack(const std::string& directory, const std::string& tensorboard,
               const FileSizes& sizes) {
  for (const auto& [name, size] : sizes) {
    if (name != tensorboard && !IsLineFile(name)) {
      return InvalidArgument(directory, ": ", name, ": is not a file that a run records in");
    }
    PACE_RETURN_IF_ERROR(CheckCut(Concat(directory, "/", name), size, IsLineFile(name)));
  }
  Files& files = Files::Default();
  for (const auto& [name, size] : sizes) {
    PACE_RETURN_IF_ERROR(files.Truncate(Concat(directory, "/", name), size));
  }
  PACE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  for (const std::string& name : names) {
    if ((!IsLineFile(name) && name != tensorboard) || sizes.contains(name)) continue;
    PACE_RETURN_IF_ERROR(files.Remove(Concat(directory, "/", name)));
  }
  return Status::Ok();
}

Result<std::optional<PolicyVersion>> LastServed(const std::string& trace_path) {
  PACE_ASSIGN_OR_RETURN(LineReader lines, OpenRecord(trace_path));
  std::optional<PolicyVersion> served;
  while (true) {
    PACE_ASSIGN_OR_RETURN(const bool more, lines.Next());
    if (!more) return served;
    const Result<TraceLine> line = ParseTraceLine(lines.line());
    if (!line.ok()) return lines.Locate(line.status());
    if (const auto* step = std::get_if<TraceStep>(&*line)) {
      served = step->served;
    } else if (const auto& group = std::get<TraceGroup>(*line); group.states_served) {
      served = group.served;
    }
  }
}

}  // namespace pace
