// The files a run is recorded in, and how a killed run's files are brought back
// to a point they were flushed at.
//
//   Status cut = CutBack(directory, tensorboard_name, sizes);
//
// Thread-safety: functions of their arguments and the disk.
#ifndef PACE_RECORD_RUN_FILES_H_
#define PACE_RECORD_RUN_FILES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/line_reader.h"
#include "core/status.h"
#include "core/version.h"

namespace pace {

inline constexpr char kMetricsFile[] = "metrics.jsonl";
inline constexpr char kDecisionsFile[] = "decisions.jsonl";
inline constexpr char kTraceFile[] = "trace.jsonl";
inline constexpr char kEventsFile[] = "events.jsonl";
inline constexpr char kRolloutsFile[] = "rollouts.jsonl";
inline constexpr char kEvaluationsFile[] = "eval.jsonl";
inline constexpr char kResponsesFile[] = "responses.jsonl";
inline constexpr char kWarningsFile[] = "warnings.jsonl";

// Bytes by file name, without directory, as RunWriter::Flush tells them. A record that goes
// on in parts has an entry for each: events.jsonl, events.jsonl.1, ...
using FileSizes = std::map<std::string, int64_t>;

// Whether a file of this name, without directory, is a record of lines.
bool IsRecordFile(std::string_view name);
// Its lines; those of a record and of the parts that continue it (line_file.h) as one file.
Result<LineReader> OpenRecord(const std::string& path);
// The sizes of a record's parts, in order; empty where there is no such file.
std::vector<int64_t> PartSizes(const FileSizes& sizes, const std::string& name);

// Cuts every file of a run to its size and removes those without one: they were
// begun later. A file that is missing, shorter, or not cut after a whole line
// is an error, and then nothing is changed. `tensorboard` is the name of the
// run's event file.
Status CutBack(const std::string& directory, const std::string& tensorboard,
               const FileSizes& sizes);

// The `served` that trace.jsonl stated last; none when it states none. A line
// that does not read is an error that names it.
Result<std::optional<PolicyVersion>> LastServed(const std::string& trace_path);

}  // namespace pace

#endif  // PACE_RECORD_RUN_FILES_H_
