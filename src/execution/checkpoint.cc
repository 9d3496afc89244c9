#include "execution/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "core/atomic_file.h"
#include "core/crc32c.h"
#include "core/file.h"
#include "core/json_record.h"
#include "core/line_reader.h"
#include "core/printable.h"
#include "execution/trainer_state.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "model/devices.h"
#include "model/model_config_json.h"

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

// A pipe or a device might never end, or never begin.
Status CheckRegular(const fs::path& path) {
  return Files::Default().Stat(path.string()).kind == FileKind::kRegular
             ? Status::Ok()
             : NotFound(path.string(), ": is no plain file");
}

Result<std::string> Read(const fs::path& path) {
  PACE_RETURN_IF_ERROR(CheckRegular(path));
  return ReadFile(path.string(), kMaxFileBytes);
}

// Block by block: weights may be larger than the memory.
Result<FileSum> SumOf(const fs::path& path) {
  PACE_RETURN_IF_ERROR(CheckRegular(path));
  PACE_ASSIGN_OR_RETURN(const auto file, Files::Default().OpenToRead(path.string()));
  std::string block(size_t{1} << 20, '\0');
  FileSum sum;
  while (true) {
    PACE_ASSIGN_OR_RETURN(const size_t num_read, file->Read(block));
    if (num_read == 0) return sum;
    sum.Add(std::string_view(block).substr(0, num_read));
  }
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
  PACE_ASSIGN_OR_RETURN(const auto names, Files::Default().List(folder.string()));
  for (const std::string& name : names) {
    if (sums.contains(name)) continue;
    PACE_ASSIGN_OR_RETURN(const FileSum sum, SumOf(folder / name));
    sums.emplace(name, sum);
  }
  std::string out;
  for (const auto& [name, sum] : sums) out += ListLine("name", name, sum);
  return out +
         ListLine("list", std::string(kList), {static_cast<int64_t>(out.size()), Crc32c(out)});
}

// A line of the list.
struct ListedFile {
  std::string name = {};
  int64_t num_bytes = 0;
  int64_t crc32c = 0;
};
template <typename V>
void JsonKeys(V& v, ListedFile& file) {
  v("name", file.name);
  v("num_bytes", file.num_bytes);
  v("crc32c", Within(file.crc32c, 0, std::numeric_limits<uint32_t>::max()));
}

Status ReadListLine(std::string_view line, std::string& name, FileSum& sum) {
  ListedFile file;
  PACE_RETURN_IF_ERROR(FromJson(line, file));
  if (file.name.empty() || file.name.find('/') != std::string::npos) {
    return DataLoss("name: not a file name");
  }
  name = std::move(file.name);
  sum = {file.num_bytes, static_cast<uint32_t>(file.crc32c)};
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
  PACE_RETURN_IF_ERROR(CheckRegular(path));
  const int64_t num_bytes = Files::Default().Stat(path.string()).num_bytes;
  if (num_bytes != written.num_bytes) {
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
  const auto check = [&](std::string_view line, int64_t number) -> Status {
    std::string name;
    FileSum sum;
    const std::string place = Concat(path.string(), ":", number);
    PACE_RETURN_IF_ERROR(ReadListLine(line, name, sum).At(place));
    PACE_RETURN_IF_ERROR(CheckFile(folder / name, sum).At(place));
    listed.emplace(std::move(name), sum);
    return Status::Ok();
  };
  PACE_RETURN_IF_ERROR(ForEachLine(list, check));
  PACE_ASSIGN_OR_RETURN(const auto names, Files::Default().List(folder.string()));
  for (const std::string& name : names) {
    const fs::path file = folder / name;
    const bool is_read = file.extension() == ".json" || file.extension() == ".safetensors" ||
                         file.extension() == ".bin" || file.extension() == ".yaml";
    if (is_read && name != kList && !listed.contains(name)) {
      return DataLoss(file.string(), ": is not listed in ", kList);
    }
  }
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
  PACE_RETURN_IF_ERROR(WriteFileAtomically(folder / kCoordinator, ToJson(run.coordinator)));
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
  PACE_RETURN_IF_ERROR(WriteFileAtomically(folder / "run.json", RunToJson(run)));
  if (!run.settings.empty()) {
    PACE_RETURN_IF_ERROR(WriteFileAtomically(folder / kSettings, run.settings));
  }
  PACE_ASSIGN_OR_RETURN(const std::string list, ListFiles(folder, std::move(sums)));
  return WriteFileAtomically(folder / kList, list);
}

// By the step in their names.
bool IsOlder(const fs::path& a, const fs::path& b) {
  const std::string left = a.filename().string();
  const std::string right = b.filename().string();
  return left.size() != right.size() ? left.size() < right.size() : left < right;
}

// Entries whose names begin with `prefix`; none where there is no such folder.
std::vector<fs::path> EntriesOf(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> entries;
  const Result<std::vector<std::string>> names = Files::Default().List(folder.string());
  if (!names.ok()) return entries;
  for (const std::string& name : *names) {
    if (name.starts_with(prefix)) entries.push_back(folder / name);
  }
  return entries;
}

// Folders of whole checkpoints, the oldest first.
std::vector<fs::path> Folders(const fs::path& checkpoints) {
  std::vector<fs::path> folders = EntriesOf(checkpoints, kPrefix);
  std::sort(folders.begin(), folders.end(), IsOlder);
  return folders;
}

void RemoveOld(const fs::path& checkpoints, int64_t keep) {
  const std::vector<fs::path> folders = Folders(checkpoints);
  for (size_t i = 0; keep > 0 && i + static_cast<size_t>(keep) < folders.size(); ++i) {
    (void)RemoveTree(folders[i].string());
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
  return ForEachLine(text, [&](std::string_view line, int64_t number) {
    Result<Group> group = from_json(line);
    if (group.ok()) groups.push_back(std::move(group).value());
    return group.status().At(Concat(lines.string(), ":", number));
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

}  // namespace

Result<std::string> SaveCheckpoint(const std::string& checkpoints, const RunCheckpoint& run,
                                   const Policy& policy, const SavedTrainer& trainer,
                                   const WeightSet* served, int64_t keep) {
  const std::string target = (fs::path(checkpoints) / FolderName(run.step)).string();
  PACE_RETURN_IF_ERROR(CreateFolders(checkpoints));
  RemovePartialCheckpoints(checkpoints);
  // A run that was resumed may come to a step again that it had reached before.
  PACE_ASSIGN_OR_RETURN(AtomicFolder folder,
                        AtomicFolder::Create(target, AtomicFolder::Existing::kReplace));
  PACE_RETURN_IF_ERROR(WriteParts(folder.path(), run, policy, trainer, served));
  PACE_RETURN_IF_ERROR(folder.Commit());
  RemoveOld(checkpoints, keep);
  return target;
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
  for (const fs::path& folder : EntriesOf(checkpoints, kPartial)) (void)RemoveTree(folder.string());
}

GroupInFlight InFlightOf(GroupRequest request) {
  GroupInFlight group;
  group.group = request.group;
  for (int64_t i = 0; i < request.num_members(); ++i) {
    group.members.push_back(request.member(i));
    group.responses.push_back(request.resumed.empty()
                                  ? PartialResponse{}
                                  : std::move(request.resumed[static_cast<size_t>(i)]));
  }
  return group;
}

Result<ResumedGroup> ResumeGroup(GroupInFlight group, const TrajectoryStore& store,
                                 const PromptSource& prompt_source, int64_t attempt) {
  const GroupTrajectories* const known = store.Find(group.group);
  if (known == nullptr) return DataLoss("group ", group.group.value(), ": has no record");
  PACE_ASSIGN_OR_RETURN(GroupRequest request,
                        prompt_source.RequestFor(group.group, known->prompt, attempt));
  request.members = std::move(group.members);
  request.resumed = std::move(group.responses);
  return ResumedGroup{.worker = known->worker, .request = std::move(request)};
}

Result<WeightSet> LoadServedWeights(const ModelConfig& config, const std::string& folder) {
  PACE_ASSIGN_OR_RETURN(SafetensorsFile file,
                        SafetensorsFile::Open(folder + "/served.safetensors"));
  const auto held = std::make_shared<const SafetensorsFile>(std::move(file));
  return WeightSet::Create(config, TensorViews(held->tensors()), held);
}

}  // namespace pace
