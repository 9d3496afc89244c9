#include "record/run_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <variant>

#include "record/line_file.h"
#include "record/line_reader.h"
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
  std::error_code error;
  if (size < 0) return InvalidArgument(path, ": size = ", size, ": must be >= 0");
  const auto actual = std::filesystem::file_size(path, error);
  if (error) {
    return DataLoss(path, ": cannot be read: ", error.message(), " (the run wrote ", size,
                    " bytes of it)");
  }
  if (actual < static_cast<uint64_t>(size)) {
    return DataLoss(path, ": holds ", actual, " bytes, the run wrote ", size,
                    " (it was cut or replaced since)");
  }
  if (!has_lines || size == 0) return Status::Ok();
  std::ifstream file(path, std::ios::binary);
  file.seekg(size - 1);
  if (file.get() != '\n') {
    return DataLoss(path, ": no line ends at byte ", size, " (it was replaced since)");
  }
  return Status::Ok();
}

}  // namespace

bool IsRecordFile(std::string_view name) {
  return std::find(kLineFiles.begin(), kLineFiles.end(), name) != kLineFiles.end();
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
  std::error_code error;
  for (const auto& [name, size] : sizes) {
    const std::string path = Concat(directory, "/", name);
    std::filesystem::resize_file(path, static_cast<uint64_t>(size), error);
    if (error) return Unavailable(path, ": cannot be cut: ", error.message());
  }
  std::vector<std::string> later;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if ((IsLineFile(name) || name == tensorboard) && !sizes.contains(name)) later.push_back(name);
  }
  if (error) return Unavailable(directory, ": cannot be read: ", error.message());
  for (const std::string& name : later) {
    const std::string path = Concat(directory, "/", name);
    std::filesystem::remove(path, error);
    if (error) return Unavailable(path, ": cannot be removed: ", error.message());
  }
  return Status::Ok();
}

Result<std::optional<PolicyVersion>> LastServed(const std::string& trace_path) {
  PACE_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(trace_path));
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
