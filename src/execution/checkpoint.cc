#include "execution/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "core/printable.h"
#include "formats/aside_file.h"
#include "formats/safetensors_writer.h"
#include "record/tensorboard_writer.h"
#include "text/read_file.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial-";
constexpr size_t kMaxFileBytes = size_t{1} << 40;

std::string FolderName(PolicyVersion step) {
  std::string digits = Concat(step.step());
  if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

Status WriteText(const fs::path& path, std::string_view text) {
  Result<AsideFile> file = AsideFile::Create(path.string());
  if (!file.ok()) return file.status();
  PACE_RETURN_IF_ERROR(file->Append(text));
  return file->Commit();
}

Status FlushFolder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool flushed = descriptor >= 0 && fsync(descriptor) == 0;
  if (descriptor >= 0) close(descriptor);
  return flushed ? Status::Ok() : Unavailable(folder.string(), ": cannot be flushed to the disk");
}

Result<std::string> Read(const fs::path& path) {
  return ReadFile(path.string(), kMaxFileBytes);
}

// Every file with its length and checksum.
Result<std::string> ListFiles(const fs::path& folder) {
  std::map<std::string, std::string> lines;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const Result<std::string> bytes = Read(entry.path());
    if (!bytes.ok()) return bytes.status();
    std::string line;
    JsonWriter json(line);
    json.BeginObject();
    json.Put("name", name);
    json.Put("num_bytes", static_cast<int64_t>(bytes->size()));
    json.Put("crc32c", static_cast<int64_t>(Crc32c(*bytes)));
    json.EndObject();
    lines.emplace(name, line + "\n");
  }
  if (error) return Unavailable(folder.string(), ": ", error.message());
  std::string out;
  for (const auto& [name, line] : lines) out += line;
  return out;
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

Status CheckFile(const fs::path& folder, std::string_view line) {
  std::string name;
  int64_t num_bytes = -1;
  int64_t checksum = -1;
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "name") {
      scan.Text(name);
    } else if (scan.key() == "num_bytes") {
      scan.Integer(0, int64_t{1} << 53, "", num_bytes);
    } else if (scan.key() == "crc32c") {
      scan.Integer(0, int64_t{1} << 32, "", checksum);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (name.empty() || name.find('/') != std::string::npos) return DataLoss("name: not a file name");
  const Result<std::string> bytes = Read(folder / name);
  if (!bytes.ok()) return bytes.status();
  if (static_cast<int64_t>(bytes->size()) != num_bytes ||
      static_cast<int64_t>(Crc32c(*bytes)) != checksum) {
    return DataLoss((folder / name).string(), ": is not what was written (", bytes->size(), " of ",
                    num_bytes, " bytes)");
  }
  return Status::Ok();
}

Status CheckFiles(const fs::path& folder) {
  const fs::path list = folder / "files.json";
  const Result<std::string> text = Read(list);
  if (!text.ok()) return text.status();
  if (text->empty()) return DataLoss(list.string(), ": is empty");
  return ForLines(*text, list, [&](std::string_view line) { return CheckFile(folder, line); });
}

Status WriteParts(const fs::path& folder, const RunCheckpoint& run, const Policy& policy,
                  const LearnerState& learner, const WeightSet* served) {
  PACE_RETURN_IF_ERROR(SaveLearnerState(folder.string(), policy, learner));
  if (served != nullptr) {
    PACE_RETURN_IF_ERROR(
        WriteSafetensors((folder / "served.safetensors").string(), served->views(), {}));
  }
  PACE_RETURN_IF_ERROR(WriteText(folder / "coordinator.json", ToJson(run.coordinator)));
  std::string lines;
  for (const GroupTrajectories& group : run.groups) lines += GroupToJson(group) + "\n";
  PACE_RETURN_IF_ERROR(WriteText(folder / "groups.jsonl", lines));
  lines.clear();
  for (const GroupInFlight& group : run.in_flight) lines += InFlightToJson(group) + "\n";
  PACE_RETURN_IF_ERROR(WriteText(folder / "in_flight.jsonl", lines));
  PACE_RETURN_IF_ERROR(WriteText(folder / "run.json", RunToJson(run)));
  const Result<std::string> list = ListFiles(folder);
  if (!list.ok()) return list.status();
  return WriteText(folder / "files.json", *list);
}

// Folders of whole checkpoints, the oldest first.
std::vector<fs::path> Folders(const fs::path& checkpoints) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints, error)) {
    if (entry.path().filename().string().starts_with(kPrefix)) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end(), [](const fs::path& a, const fs::path& b) {
    const std::string left = a.filename().string();
    const std::string right = b.filename().string();
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  return folders;
}

void RemoveOld(const fs::path& checkpoints, int64_t keep) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(checkpoints, ignored)) {
    // Left by a process that was killed.
    if (entry.path().filename().string().starts_with(kPartial)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
  const std::vector<fs::path> folders = Folders(checkpoints);
  for (size_t i = 0; keep > 0 && i + static_cast<size_t>(keep) < folders.size(); ++i) {
    fs::remove_all(folders[i], ignored);
  }
}

Result<RunCheckpoint> ReadParts(const fs::path& folder) {
  PACE_RETURN_IF_ERROR(CheckFiles(folder));
  RunCheckpoint run;
  const auto read = [&](const char* name, const auto& take) -> Status {
    const Result<std::string> text = Read(folder / name);
    if (!text.ok()) return text.status();
    return take(*text, folder / name);
  };
  PACE_RETURN_IF_ERROR(read("run.json", [&](const std::string& text, const fs::path& path) {
    return RunFromJson(text, run).At(path.string());
  }));
  PACE_RETURN_IF_ERROR(read("coordinator.json", [&](const std::string& text, const fs::path& path) {
    Result<CoordinatorSnapshot> snapshot = SnapshotFromJson(text, path.string());
    if (!snapshot.ok()) return snapshot.status();
    run.coordinator = std::move(snapshot).value();
    for (PooledGroup& group : run.coordinator.pool) group.summary.members = group.members;
    return Status::Ok();
  }));
  PACE_RETURN_IF_ERROR(read("groups.jsonl", [&](const std::string& text, const fs::path& path) {
    return ForLines(text, path, [&](std::string_view line) {
      Result<GroupTrajectories> group = GroupFromJson(line);
      if (group.ok()) run.groups.push_back(std::move(group).value());
      return group.status();
    });
  }));
  PACE_RETURN_IF_ERROR(read("in_flight.jsonl", [&](const std::string& text, const fs::path& path) {
    return ForLines(text, path, [&](std::string_view line) {
      Result<GroupInFlight> group = InFlightFromJson(line);
      if (group.ok()) run.in_flight.push_back(std::move(group).value());
      return group.status();
    });
  }));
  return run;
}

}  // namespace

Result<std::string> SaveCheckpoint(const std::string& checkpoints, const RunCheckpoint& run,
                                   const Policy& policy, const LearnerState& learner,
                                   const WeightSet* served, int64_t keep) {
  const fs::path root(checkpoints);
  const fs::path target = root / FolderName(run.step);
  const fs::path aside = root / (std::string(kPartial) + FolderName(run.step));
  std::error_code error;
  fs::create_directories(root, error);
  fs::remove_all(aside, error);
  if (!fs::create_directory(aside, error)) {
    return Unavailable(aside.string(), ": cannot be created: ", error.message());
  }
  PACE_RETURN_IF_ERROR(WriteParts(aside, run, policy, learner, served));
  PACE_RETURN_IF_ERROR(FlushFolder(aside));
  // A run that was resumed may come to a step again that it had reached before.
  fs::remove_all(target, error);
  fs::rename(aside, target, error);
  if (error) return Unavailable(target.string(), ": cannot be put in place: ", error.message());
  PACE_RETURN_IF_ERROR(FlushFolder(root));
  RemoveOld(root, keep);
  return target.string();
}

Result<LoadedCheckpoint> LoadNewestCheckpoint(const std::string& checkpoints,
                                              const std::function<void(std::string)>& note) {
  const std::vector<fs::path> folders = Folders(checkpoints);
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    Result<RunCheckpoint> run = ReadParts(*folder);
    if (run.ok()) return LoadedCheckpoint{folder->string(), std::move(run).value()};
    note(Concat("skipped checkpoint ", folder->string(), ": ", run.status().message()));
  }
  return NotFound(checkpoints, ": holds no whole checkpoint to resume from");
}

}  // namespace pace
