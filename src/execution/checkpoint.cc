#include "execution/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "core/printable.h"
#include "execution/learner.h"
#include "formats/aside_file.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "model/devices.h"
#include "record/crc32c.h"
#include "text/read_file.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial-";
constexpr std::string_view kList = "files.json";
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

struct FileSum {
  int64_t num_bytes = 0;
  uint32_t crc32c = 0;
  friend bool operator==(const FileSum&, const FileSum&) = default;
};

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

// Every file with its length and checksum; the last line is of those before it.
Result<std::string> ListFiles(const fs::path& folder) {
  std::map<std::string, FileSum> sums;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const Result<FileSum> sum = SumOf(entry.path());
    if (!sum.ok()) return sum.status();
    sums.emplace(entry.path().filename().string(), *sum);
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

Status CheckFile(const fs::path& path, const FileSum& written) {
  PACE_RETURN_IF_ERROR(CheckPlain(path));
  std::error_code error;
  const auto num_bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (!error && num_bytes != written.num_bytes) {
    return DataLoss(path.string(), ": has ", num_bytes, " bytes of ", written.num_bytes);
  }
  const Result<FileSum> sum = SumOf(path);
  if (!sum.ok()) return sum.status();
  if (*sum == written) return Status::Ok();
  return DataLoss(path.string(), ": is damaged (its checksum is not the one written)");
}

// The names that files.json lists, all as they were written, and no others that a
// loader would read.
Status CheckFiles(const fs::path& folder) {
  const fs::path path = folder / kList;
  const Result<std::string> text = Read(path);
  if (!text.ok()) return text.status();
  const size_t end = text->rfind('\n', text->size() < 2 ? 0 : text->size() - 2);
  const std::string_view list =
      std::string_view(*text).substr(0, end == std::string::npos ? 0 : end + 1);
  const FileSum own = {static_cast<int64_t>(list.size()), Crc32c(list)};
  if (list.empty() || text->substr(list.size()) != ListLine("list", std::string(kList), own)) {
    return DataLoss(path.string(), ": is damaged (its last line does not fit the others)");
  }
  std::set<std::string> names = {std::string(kList)};
  const auto check = [&](std::string_view line) -> Status {
    std::string name;
    FileSum sum;
    PACE_RETURN_IF_ERROR(ScanListLine(line, name, sum));
    PACE_RETURN_IF_ERROR(CheckFile(folder / name, sum));
    names.insert(std::move(name));
    return Status::Ok();
  };
  PACE_RETURN_IF_ERROR(ForLines(list, path, check));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path& file = entry.path();
    const bool is_read = file.extension() == ".json" || file.extension() == ".safetensors";
    if (is_read && !names.contains(file.filename().string())) {
      return DataLoss(file.string(), ": is not listed in ", kList);
    }
  }
  return error ? Unavailable(folder.string(), ": ", error.message()) : Status::Ok();
}

Status WriteParts(const fs::path& folder, const RunCheckpoint& run, const Policy& policy,
                  const LearnerState& learner, const WeightSet* served) {
  PACE_RETURN_IF_ERROR(SaveLearnerState(folder.string(), policy, learner));
  if (served != nullptr) {
    const Result<WeightSet> on_host = ToHost(policy.config, *served);
    if (!on_host.ok()) return on_host.status();
    PACE_RETURN_IF_ERROR(
        WriteSafetensors((folder / "served.safetensors").string(), on_host->views(), {}));
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
  return WriteText(folder / kList, *list);
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

// Whether the tensors can be loaded, by the config that lies beside them.
Status CheckTensors(const fs::path& folder, bool has_served) {
  const Result<ModelConfig> config = ReadModelConfig(folder.string());
  if (!config.ok()) return config.status();
  PACE_RETURN_IF_ERROR(WeightSet::Load(*config, folder.string()).status());
  if (has_served) {
    PACE_RETURN_IF_ERROR(LoadServedWeights(*config, folder.string()).status());
  }
  return SafetensorsFile::Open((folder / "optimizer.safetensors").string()).status();
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
  PACE_RETURN_IF_ERROR(CheckAgreement(run).At(folder.string()));
  PACE_RETURN_IF_ERROR(CheckTensors(folder, run.served != run.step));
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
