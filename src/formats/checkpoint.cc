#include "formats/checkpoint.h"

#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "core/file.h"
#include "core/json_scanner.h"
#include "core/printable.h"

namespace pace {
namespace {

// From tensor to shard.
using WeightMap = std::map<std::string, std::string, std::less<>>;

// An index from elsewhere must not lead out of its folder.
bool StaysInFolder(const std::filesystem::path& shard) {
  if (shard.empty() || shard.is_absolute() || shard.filename().empty()) return false;
  for (const auto& part : shard) {
    if (part == "..") return false;
  }
  return shard.native().find('\0') == std::string::npos;
}

bool ScanWeightMap(JsonScanner& scan, WeightMap& out) {
  if (!scan.EnterObject()) return false;
  while (scan.NextKey()) {
    const auto [entry, is_new] = out.emplace(scan.key(), "");
    if (!is_new) return scan.Fail("is listed twice");
    if (!scan.Text(entry->second)) return false;
    if (!StaysInFolder(entry->second)) {
      return scan.FailValue(entry->second, "must be a file in the folder of the index", "");
    }
  }
  return scan.ok();
}

Result<WeightMap> ParseIndex(std::string_view text) {
  WeightMap map;
  bool has_map = false;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() != "weight_map") {
      scan.Skip();
    } else if (std::exchange(has_map, true)) {
      scan.Fail("must stand once");
    } else {
      ScanWeightMap(scan, map);
    }
  }
  scan.End();
  if (scan.ok() && !has_map) return InvalidArgument("weight_map: is missing");
  if (!scan.ok()) return scan.status();
  return map;
}

}  // namespace

Status SafetensorsCheckpoint::Add(SafetensorsFile file) {
  for (const auto& [name, tensor] : file.tensors()) {
    if (tensors_.emplace(name, tensor).second) continue;
    std::string first;
    for (const SafetensorsFile& other : files_) {
      if (other.Find(name) != nullptr) first = other.path();
    }
    return InvalidArgument(file.path(), ": tensor ", Printable(name), ": is also in ", first,
                           ": must be in one shard");
  }
  files_.push_back(std::move(file));
  return Status::Ok();
}

Result<SafetensorsCheckpoint> SafetensorsCheckpoint::OpenFile(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  SafetensorsCheckpoint checkpoint;
  PACE_RETURN_IF_ERROR(checkpoint.Add(std::move(file)));
  return checkpoint;
}

Result<SafetensorsCheckpoint> SafetensorsCheckpoint::OpenIndex(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(const MappedFile index, MappedFile::Open(path));
  const Result<WeightMap> map = ParseIndex(index.text());
  if (!map.ok()) return map.status().At(path);

  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::set<std::string> shards;
  for (const auto& [name, shard] : *map) shards.insert(shard);
  SafetensorsCheckpoint checkpoint;
  for (const std::string& shard : shards) {
    Result<SafetensorsFile> file = SafetensorsFile::Open((folder / shard).string());
    if (!file.ok()) return file.status().At(path);
    PACE_RETURN_IF_ERROR(checkpoint.Add(std::move(*file)).At(path));
  }
  for (const auto& [name, shard] : *map) {
    const std::string wanted = (folder / shard).string();
    for (const SafetensorsFile& file : checkpoint.files_) {
      if (file.path() != wanted || file.Find(name) != nullptr) continue;
      return NotFound(path, ": weight_map.", Printable(name), " = ", Printable(shard),
                      ": the shard does not hold this tensor");
    }
  }
  return checkpoint;
}

Result<SafetensorsCheckpoint> SafetensorsCheckpoint::OpenFolder(const std::string& folder) {
  const std::filesystem::path parent(folder);
  const std::string whole = (parent / kSafetensorsFileName).string();
  const std::string index = (parent / kSafetensorsIndexName).string();
  if (Files::Default().Exists(whole)) return OpenFile(whole);
  if (Files::Default().Exists(index)) return OpenIndex(index);
  return NotFound(folder, ": must hold ", kSafetensorsFileName, " or ", kSafetensorsIndexName);
}

const TensorView* SafetensorsCheckpoint::Find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace pace
