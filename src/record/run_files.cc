#include "record/run_files.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <variant>

#include "record/line_reader.h"
#include "record/trace_reader.h"

namespace pace {
namespace {

constexpr std::array<const char*, 8> kLineFiles = {kMetricsFile,   kDecisionsFile, kTraceFile,
                                                   kEventsFile,    kRolloutsFile,  kEvaluationsFile,
                                                   kResponsesFile, kWarningsFile};

bool IsLineFile(const std::string& name) {
  for (const char* known : kLineFiles) {
    if (name == known) return true;
  }
  return false;
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
  std::vector<std::string> names(kLineFiles.begin(), kLineFiles.end());
  names.push_back(tensorboard);
  for (const std::string& name : names) {
    if (sizes.contains(name)) continue;
    const std::string path = Concat(directory, "/", name);
    std::filesystem::remove(path, error);
    if (error) return Unavailable(path, ": cannot be removed: ", error.message());
  }
  return Status::Ok();
}

Result<std::optional<PolicyVersion>> LastServed(const std::string& trace_path) {
  Result<LineReader> lines = LineReader::Open(trace_path);
  if (!lines.ok()) return lines.status();
  std::optional<PolicyVersion> served;
  while (true) {
    const Result<bool> more = lines->Next();
    if (!more.ok()) return more.status();
    if (!*more) return served;
    const Result<TraceLine> line = ParseTraceLine(lines->line());
    if (!line.ok()) return lines->Locate(line.status());
    if (const auto* step = std::get_if<TraceStep>(&*line)) {
      served = step->served;
    } else if (const auto& group = std::get<TraceGroup>(*line); group.states_served) {
      served = group.served;
    }
  }
}

}  // namespace pace
