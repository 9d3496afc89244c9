#include "execution/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "core/printable.h"
#include "execution/trainer_state.h"
#include "formats/atomic_file.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "model/devices.h"
#include "model/model_config_json.h"
#include "record/crc32c.h"
#include "text/read_file.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial-";
constexpr std::string_view kList = "files.json";
constexpr char kGroups[] = "groups.bin";
constexpr char kInFlight[] = "in_flight.bin";
constexpr char kKept[] = "kept.bin";
constexpr char kSettings[] = "settings.yaml";
constexpr char kCoordinator[] = "coordinator.json";
constexpr size_t kMaxFileBytes = size_t{1} << 40;

std::string FolderName(PolicyVersion step) {
  std::string digits = Concat(step.step());
  if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

Status WriteText(const fs::path& path, std::string_view text) {
  PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path.string()));
  PACE_RETURN_IF_ERROR(file.Append(text));
  return file.Commit();
}

Status FlushFolder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool flushed = descriptor >= 0 && fsync(descriptor) == 0;
  if (descriptor >= 0) close(descriptor);
  return flushed ? Status::Ok() : Unavailable(folder.string(), ": cannot be flushed to the disk");
}

// Anything but a plain file might never end, or never begin.
Status CheckPlain(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? Status::Ok()
                                          : NotFound(path.string(), ": is no plain file");
}

Result<std::string> Read(const fs::path& path) {
  PACE_RETURN_IF_ERROR(CheckPlain(path));
  return ReadFile(path.string(), kMaxFileBytes);
}

// Block by block: weights may be larger than the memory.
Result<FileSum> SumOf(const fs::path& path) {
  PACE_RETURN_IF_ERROR(CheckPlain(path));
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(path.string(), ": cannot be read");
  std::string block(size_t{1} << 20, '\0');
  FileSum sum;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    const auto num_read = static_cast<size_t>(file.gcount());
    sum.crc32c = Crc32c(std::string_view(block).substr(0, num_read), sum.crc32c);
    sum.num_bytes += static_cast<int64_t>(num_read);
  }
  if (file.bad()) return Unavailable(path.string(), ": reading failed");
  return sum;
}

std::string ListLine(std::string_view key, const std::string& name, const FileSum& sum) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Put(key, name);
  json.Put("num_bytes", sum.num_bytes);
  json.Put("crc32c", static_cast<int64_t>(sum.crc32c));
  json.EndObject();
  return line + "\n";
}

// By file name.
using FileSums = std::map<std::string, FileSum>;

// Every file with its length and checksum, where `sums` does not know them already; the
// last line is of those before it.
Result<std::string> ListFiles(const fs::path& folder, FileSums sums) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (sums.contains(entry.path().filename().string())) continue;
    PACE_ASSIGN_OR_RETURN(const FileSum sum, SumOf(entry.path()));
    sums.emplace(entry.path().filename().string(), sum);
  }
  if (error) return Unavailable(folder.string(), ": ", error.message());
  std::string out;
  for (const auto& [name, sum] : sums) out += ListLine("name", name, sum);
  return out +
         ListLine("list", std::string(kList), {static_cast<int64_t>(out.size()), Crc32c(out)});
}

// Calls `take` with every line of a text.
template <typename Take>
Status ForLines(std::string_view text, const fs::path& path, const Take& take) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    PACE_RETURN_IF_ERROR(take(text.substr(0, end)).At(Concat(path.string(), ":", number)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Status::Ok();
}

Status ScanListLine(std::string_view line, std::string& name, FileSum& sum) {
  int64_t checksum = -1;
  sum.num_bytes = -1;
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "name") {
      scan.Text(name);
    } else if (scan.key() == "num_bytes") {
      scan.Integer(0, int64_t{1} << 53, "", sum.num_bytes);
    } else if (scan.key() == "crc32c") {
      scan.Integer(0, (int64_t{1} << 32) - 1, "", checksum);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (name.empty() || name.find('/') != std::string::npos) return DataLoss("name: not a file name");
  if (checksum < 0) return DataLoss("crc32c: missing");
  sum.crc32c = static_cast<uint32_t>(checksum);
  return Status::Ok();
}

Status Damaged(const fs::path& path) {
  return DataLoss(path.string(), ": is damaged (its checksum is not the one written)");
}

// Responses are summed up as they are read: they may be most of the checkpoint.
bool IsSummedWhenRead(const fs::path& path) {
  return path.extension() == ".bin";
}

Status CheckFile(const fs::path& path, const FileSum& written) {
  PACE_RETURN_IF_ERROR(CheckPlain(path));
  std::error_code error;
  const auto num_bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (!error && num_bytes != written.num_bytes) {
    return DataLoss(path.string(), ": has ", num_bytes, " bytes of ", written.num_bytes);
  }
  if (IsSummedWhenRead(path)) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(const FileSum sum, SumOf(path));
  return sum == written ? Status::Ok() : Damaged(path);
}

// What files.json lists, all as they were written, and no others that a loader would
// read.
Result<FileSums> CheckFiles(const fs::path& folder) {
  const fs::path path = folder / kList;
  PACE_ASSIGN_OR_RETURN(const std::string text, Read(path));
  const size_t end = text.rfind('\n', text.size() < 2 ? 0 : text.size() - 2);
  const std::string_view list =
      std::string_view(text).substr(0, end == std::string::npos ? 0 : end + 1);
  const FileSum own = {static_cast<int64_t>(list.size()), Crc32c(list)};
  if (list.empty() || text.substr(list.size()) != ListLine("list", std::string(kList), own)) {
    return DataLoss(path.string(), ": is damaged (its last line does not fit the others)");
  }
  FileSums listed;
  const auto check = [&](std::string_view line) -> Status {
    std::string name;
    FileSum sum;
    PACE_RETURN_IF_ERROR(ScanListLine(line, name, sum));
    PACE_RETURN_IF_ERROR(CheckFile(folder / name, sum));
    listed.emplace(std::move(name), sum);
    return Status::Ok();
  };
  PACE_RETURN_IF_ERROR(ForLines(list, path, check));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path& file = entry.path();
    const bool is_read = file.extension() == ".json" || file.extension() == ".safetensors" ||
                         file.extension() == ".bin" || file.extension() == ".yaml";
    if (is_read && file.filename() != kList && !listed.contains(file.filename().string())) {
      return DataLoss(file.string(), ": is not listed in ", kList);
    }
  }
  if (error) return Unavailable(folder.string(), ": ", error.message());
  return listed;
}

Status WriteParts(const fs::path& folder, const RunCheckpoint& run, const Policy& policy,
                  const SavedTrainer& trainer, const WeightSet* served) {
  PACE_RETURN_IF_ERROR(SaveTrainerState(folder.string(), policy, trainer));
  if (served != nullptr) {
    PACE_ASSIGN_OR_RETURN(const WeightSet on_host, ToHost(policy.config, *served));
    PACE_RETURN_IF_ERROR(
        WriteSafetensors((folder / "served.safetensors").string(), on_host.views(), {}));
  }
  PACE_RETURN_IF_ERROR(WriteText(folder / kCoordinator, ToJson(run.coordinator)));
  FileSums sums;
  PACE_ASSIGN_OR_RETURN(const FileSum groups, WriteGroups((folder / kGroups).string(), run.groups));
  sums.emplace(kGroups, groups);
  PACE_ASSIGN_OR_RETURN(const FileSum in_flight,
                        WriteInFlight((folder / kInFlight).string(), run.in_flight));
  sums.emplace(kInFlight, in_flight);
  if (!run.kept.empty()) {
    PACE_ASSIGN_OR_RETURN(const FileSum kept, WriteInFlight((folder / kKept).string(), run.kept));
    sums.emplace(kKept, kept);
  }
  PACE_RETURN_IF_ERROR(WriteText(folder / "run.json", RunToJson(run)));
  if (!run.settings.empty()) {
    PACE_RETURN_IF_ERROR(WriteText(folder / kSettings, run.settings));
  }
  PACE_ASSIGN_OR_RETURN(const std::string list, ListFiles(folder, std::move(sums)));
  return WriteText(folder / kList, list);
}

// By the step in their names.
bool IsOlder(const fs::path& a, const fs::path& b) {
  const std::string left = a.filename().string();
  const std::string right = b.filename().string();
  return left.size() != right.size() ? left.size() < right.size() : left < right;
}

// Folders of whole checkpoints, the oldest first.
std::vector<fs::path> Folders(const fs::path& checkpoints) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints, error)) {
    if (entry.path().filename().string().starts_with(kPrefix)) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end(), IsOlder);
  return folders;
}

void RemoveOld(const fs::path& checkpoints, int64_t keep) {
  std::error_code ignored;
  const std::vector<fs::path> folders = Folders(checkpoints);
  for (size_t i = 0; keep > 0 && i + static_cast<size_t>(keep) < folders.size(); ++i) {
    fs::remove_all(folders[i], ignored);
  }
}

// Whether the tensors can be loaded, by the config that lies beside them.
Status CheckTensors(const fs::path& folder, bool has_served) {
  PACE_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(folder.string()));
  PACE_RETURN_IF_ERROR(WeightSet::Load(config, folder.string()).status());
  if (has_served) {
    PACE_RETURN_IF_ERROR(LoadServedWeights(config, folder.string()).status());
  }
  return SafetensorsFile::Open((folder / "optimizer.safetensors").string()).status();
}

// Every group of one file of responses, in the present form or as JSON lines.
template <typename Group, typename Binary, typename FromJson>
Status ReadResponses(const fs::path& folder, const FileSums& listed, const std::string& name,
                     std::vector<Group>& groups, const Binary& read, const FromJson& from_json) {
  const fs::path path = folder / name;
  if (const auto written = listed.find(name); written != listed.end()) {
    PACE_ASSIGN_OR_RETURN(const FileSum sum, read(path.string(), groups));
    return sum == written->second ? Status::Ok() : Damaged(path);
  }
  const fs::path lines = fs::path(path).replace_extension(".jsonl");
  if (!listed.contains(lines.filename().string())) return NotFound(path.string(), ": is missing");
  PACE_ASSIGN_OR_RETURN(const std::string text, Read(lines));
  return ForLines(text, lines, [&](std::string_view line) {
    Result<Group> group = from_json(line);
    if (group.ok()) groups.push_back(std::move(group).value());
    return group.status();
  });
}

Result<CoordinatorSnapshot> ReadCoordinator(const fs::path& folder) {
  const fs::path path = folder / kCoordinator;
  PACE_ASSIGN_OR_RETURN(const std::string text, Read(path));
  return SnapshotFromJson(text, path.string());
}

Result<RunCheckpoint> ReadParts(const fs::path& folder) {
  PACE_ASSIGN_OR_RETURN(const FileSums listed, CheckFiles(folder));
  RunCheckpoint run;
  PACE_ASSIGN_OR_RETURN(const std::string text, Read(folder / "run.json"));
  PACE_RETURN_IF_ERROR(RunFromJson(text, run).At((folder / "run.json").string()));
  PACE_ASSIGN_OR_RETURN(run.coordinator, ReadCoordinator(folder));
  for (PooledGroup& group : run.coordinator.pool) group.summary.members = group.members;
  PACE_RETURN_IF_ERROR(
      ReadResponses(folder, listed, kGroups, run.groups, ReadGroups, GroupFromJson));
  PACE_RETURN_IF_ERROR(
      ReadResponses(folder, listed, kInFlight, run.in_flight, ReadInFlight, InFlightFromJson));
  if (listed.contains(kKept)) {
    PACE_RETURN_IF_ERROR(
        ReadResponses(folder, listed, kKept, run.kept, ReadInFlight, InFlightFromJson));
  }
  if (listed.contains(kSettings)) {
    PACE_ASSIGN_OR_RETURN(run.settings, Read(folder / kSettings));
  }
  PACE_RETURN_IF_ERROR(CheckAgreement(run).At(folder.string()));
  PACE_RETURN_IF_ERROR(CheckTensors(folder, run.served != run.step));
  return run;
}

// Puts a whole folder in the place of another, or of none, at one moment.
Status PutInPlace(const fs::path& aside, const fs::path& target) {
  // A run that was resumed may come to a step again that it had reached before.
  std::error_code error;
  if (fs::exists(target, error)) {
    if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
      fs::remove_all(aside, error);
      return Status::Ok();
    }
    fs::remove_all(target, error);  // a file system that cannot exchange
  }
  fs::rename(aside, target, error);
  if (error) return Unavailable(target.string(), ": cannot be put in place: ", error.message());
  return Status::Ok();
}

}  // namespace

Result<std::string> SaveCheckpoint(const std::string& checkpoints, const RunCheckpoint& run,
                                   const Policy& policy, const SavedTrainer& trainer,
                                   const WeightSet* served, int64_t keep) {
  const fs::path root(checkpoints);
  const fs::path target = root / FolderName(run.step);
  const fs::path aside = root / (std::string(kPartial) + FolderName(run.step));
  std::error_code error;
  fs::create_directories(root, error);
  RemovePartialCheckpoints(checkpoints);
  error.clear();
  fs::create_directory(aside, error);
  if (error) return Unavailable(aside.string(), ": cannot be created: ", error.message());
  Status status = WriteParts(aside, run, policy, trainer, served);
  if (status.ok()) status = FlushFolder(aside);
  if (status.ok()) status = PutInPlace(aside, target);
  if (!status.ok()) {
    fs::remove_all(aside, error);
    return status;
  }
  PACE_RETURN_IF_ERROR(FlushFolder(root));
  RemoveOld(root, keep);
  return target.string();
}

Result<std::optional<LoadedCheckpoint>> FindCheckpoint(
    const std::string& checkpoints, ResumeFrom from, const std::function<void(std::string)>& note) {
  std::vector<fs::path> folders = Folders(checkpoints);
  std::reverse(folders.begin(), folders.end());
  std::vector<fs::path> stopped;  // asked for by a stop
  if (from == ResumeFrom::kNewestScheduled) {
    const auto is_scheduled = [](const fs::path& folder) {
      const Result<CoordinatorSnapshot> snapshot = ReadCoordinator(folder);
      return !snapshot.ok() || !snapshot->stop_requested;
    };
    const auto rest = std::stable_partition(folders.begin(), folders.end(), is_scheduled);
    stopped.assign(rest, folders.end());
    folders.erase(rest, folders.end());
  }
  const bool has_any = !folders.empty();
  for (const fs::path& folder : stopped) {
    if (has_any && IsOlder(folder, folders.front())) continue;
    note(Concat("passed over checkpoint ", folder.string(),
                ": a stop asked for it, and a run that nobody stops is not saved there"));
  }
  if (has_any) folders.insert(folders.end(), stopped.begin(), stopped.end());
  for (const fs::path& folder : folders) {
    Result<RunCheckpoint> run = ReadParts(folder);
    if (run.ok()) return std::optional(LoadedCheckpoint{folder.string(), std::move(run).value()});
    note(Concat("skipped checkpoint ", folder.string(), ": ", run.status().message()));
  }
  if (has_any) return NotFound(checkpoints, ": holds no whole checkpoint to resume from");
  return std::optional<LoadedCheckpoint>();
}

Result<LoadedCheckpoint> LoadNewestCheckpoint(const std::string& checkpoints,
                                              const std::function<void(std::string)>& note) {
  PACE_ASSIGN_OR_RETURN(std::optional<LoadedCheckpoint> found,
                        FindCheckpoint(checkpoints, ResumeFrom::kNewest, note));
  if (!found.has_value()) {
    return NotFound(checkpoints, ": holds no whole checkpoint to resume from");
  }
  return *std::move(found);
}

std::string NewestCheckpointFolder(const std::string& checkpoints) {
  const std::vector<fs::path> folders = Folders(checkpoints);
  return folders.empty() ? "" : folders.back().string();
}

void RemovePartialCheckpoints(const std::string& checkpoints) {
  std::error_code ignored;
  std::vector<fs::path> partial;
  for (const auto& entry : fs::directory_iterator(checkpoints, ignored)) {
    if (entry.path().filename().string().starts_with(kPartial)) partial.push_back(entry.path());
  }
  for (const fs::path& folder : partial) fs::remove_all(folder, ignored);
}

}  // namespace pace
