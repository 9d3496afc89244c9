#include "formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "core/json_scanner.h"
#include "core/printable.h"

namespace pace {
namespace {

constexpr size_t kLengthBytes = 8;
static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max();

// The package reads the dtype as a Rust enumeration, for which {"F32": null}
// is another spelling of "F32".
bool ScanDtype(JsonScanner& scan, Dtype& out) {
  std::string name;
  if (scan.NextKind() == JsonScanner::Kind::kObject) {
    if (!scan.EnterObject()) return false;
    if (!scan.NextKey()) return scan.Fail("must be the name of a dtype");
    name = scan.key();
    if (!scan.TakeNull()) return scan.Fail("must be the name of a dtype");
    if (scan.NextKey()) return scan.Fail("must be the name of one dtype");
    if (!scan.ok()) return false;
  } else if (!scan.Text(name)) {
    return false;
  }
  const std::optional<Dtype> dtype = ParseDtype(name);
  if (!dtype.has_value()) {
    return scan.FailValue(name, "must be a dtype of safetensors", "F32, F16, BF16, I64, ...");
  }
  out = *dtype;
  return true;
}

bool ScanShape(JsonScanner& scan, std::vector<int64_t>& out) {
  out.clear();
  if (!scan.EnterArray()) return false;
  while (scan.NextItem()) {
    int64_t dimension = 0;
    if (!scan.Integer(0, kMaxInteger, "a dimension", dimension)) return false;
    out.push_back(dimension);
  }
  return scan.ok();
}

bool ScanOffsets(JsonScanner& scan, SafetensorsEntry& entry) {
  if (!scan.EnterArray()) return false;
  for (int64_t* const offset : {&entry.begin, &entry.end}) {
    if (!scan.NextItem()) return scan.Fail("must be two offsets, begin and end");
    if (!scan.Integer(0, kMaxInteger, "an offset into the data", *offset)) return false;
  }
  if (scan.NextItem()) return scan.Fail("must be two offsets, begin and end");
  return scan.ok();
}

// The package reads a number it does not need as well, and refuses 1e999.
bool SkipField(JsonScanner& scan) {
  if (scan.NextKind() != JsonScanner::Kind::kNumber) return scan.Skip();
  constexpr double kMaxReal = std::numeric_limits<double>::max();
  double ignored = 0;
  return scan.Real(-kMaxReal, kMaxReal, "", ignored);
}

bool ScanEntryFields(JsonScanner& scan, SafetensorsEntry& entry) {
  bool has_dtype = false;
  bool has_shape = false;
  bool has_offsets = false;
  if (!scan.EnterObject()) return false;
  while (scan.NextKey()) {
    bool* const has = scan.key() == "dtype"          ? &has_dtype
                      : scan.key() == "shape"        ? &has_shape
                      : scan.key() == "data_offsets" ? &has_offsets
                                                     : nullptr;
    if (has != nullptr && std::exchange(*has, true)) return scan.Fail("must stand once");
    const bool scanned = has == &has_dtype     ? ScanDtype(scan, entry.dtype)
                         : has == &has_shape   ? ScanShape(scan, entry.shape)
                         : has == &has_offsets ? ScanOffsets(scan, entry)
                                               : SkipField(scan);
    if (!scanned) return false;
  }
  if (!has_dtype) return scan.Fail("field dtype is missing");
  if (!has_shape) return scan.Fail("field shape is missing");
  if (!has_offsets) return scan.Fail("field data_offsets is missing");
  return scan.ok();
}

// An entry is an object, or its three fields in order in a list.
bool ScanEntry(JsonScanner& scan, SafetensorsEntry& entry) {
  if (scan.NextKind() != JsonScanner::Kind::kArray) return ScanEntryFields(scan, entry);
  constexpr std::string_view kRule = "must be [dtype, shape, data_offsets] or an object of these";
  if (!scan.EnterArray()) return false;
  if (!scan.NextItem()) return scan.Fail(kRule);
  if (!ScanDtype(scan, entry.dtype)) return false;
  if (!scan.NextItem()) return scan.Fail(kRule);
  if (!ScanShape(scan, entry.shape)) return false;
  if (!scan.NextItem()) return scan.Fail(kRule);
  if (!ScanOffsets(scan, entry)) return false;
  if (scan.NextItem()) return scan.Fail(kRule);
  return scan.ok();
}

bool ScanMetadata(JsonScanner& scan, std::optional<SafetensorsMetadata>& out) {
  if (scan.TakeNull()) return true;
  if (!scan.EnterObject()) return false;
  SafetensorsMetadata metadata;
  while (scan.NextKey()) {
    const std::string key(scan.key());
    if (!scan.Text(metadata[key])) return false;
  }
  out = std::move(metadata);
  return scan.ok();
}

}  // namespace

Result<SafetensorsContents> ParseSafetensors(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return DataLoss("holds ", file.size(), " bytes: must begin with 8 bytes, the header's length");
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return InvalidArgument("header length = ", length, ": must be <= ", kMaxSafetensorsHeaderBytes,
                           " (is it a safetensors file?)");
  }
  const std::span<const std::byte> behind = file.subspan(kLengthBytes);
  if (length > behind.size()) {
    return DataLoss("header length = ", length, ": only ", behind.size(),
                    " bytes follow (is the file truncated?)");
  }
  const auto* const text = reinterpret_cast<const char*>(behind.data());
  PACE_ASSIGN_OR_RETURN(SafetensorsHeader header, ParseSafetensorsHeader({text, length}));
  const std::span<const std::byte> data = behind.subspan(length);
  PACE_RETURN_IF_ERROR(CheckSafetensorsLayout(header, static_cast<int64_t>(data.size())));

  SafetensorsContents contents;
  contents.metadata = std::move(header.metadata);
  for (auto& [name, entry] : header.entries) {
    const auto bytes = data.subspan(static_cast<size_t>(entry.begin),
                                    static_cast<size_t>(entry.end - entry.begin));
    contents.tensors.emplace_hint(contents.tensors.end(), name,
                                  TensorView{entry.dtype, std::move(entry.shape), bytes});
  }
  return contents;
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  Result<SafetensorsContents> contents = ParseSafetensors(file.bytes());
  if (!contents.ok()) return contents.status().At(path);
  return SafetensorsFile(std::move(file), std::move(*contents));
}

const TensorView* SafetensorsFile::Find(std::string_view name) const {
  const auto found = contents_.tensors.find(name);
  return found == contents_.tensors.end() ? nullptr : &found->second;
}

Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text) {
  SafetensorsHeader header;
  bool has_metadata = false;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "__metadata__") {
      if (std::exchange(has_metadata, true)) {
        scan.Fail("must stand once");
      } else {
        ScanMetadata(scan, header.metadata);
      }
      continue;
    }
    SafetensorsEntry entry;
    const std::string name(scan.key());
    if (ScanEntry(scan, entry)) header.entries[name] = std::move(entry);
  }
  scan.End();
  if (!scan.ok()) return scan.status().At("header");
  return header;
}

Status CheckSafetensorsLayout(const SafetensorsHeader& header, int64_t data_bytes) {
  using Named = std::pair<const std::string, SafetensorsEntry>;
  std::vector<const Named*> by_offset;
  by_offset.reserve(header.entries.size());
  for (const Named& named : header.entries) by_offset.push_back(&named);
  std::sort(by_offset.begin(), by_offset.end(), [](const Named* left, const Named* right) {
    return std::tie(left->second.begin, left->second.end, left->first) <
           std::tie(right->second.begin, right->second.end, right->first);
  });

  int64_t expected = 0;
  std::string last = "no tensor";
  for (const Named* const named : by_offset) {
    const SafetensorsEntry& entry = named->second;
    const std::string where = Concat("tensor ", Printable(named->first));
    const std::string offsets = Concat("data_offsets = [", entry.begin, ", ", entry.end, "]");
    if (entry.end < entry.begin) {
      return DataLoss(where, ": ", offsets, ": the end must not be before the begin");
    }
    if (entry.begin != expected) {
      return DataLoss(where, ": ", offsets, ": must begin at ", expected,
                      " (tensors follow each other without gap or overlap)");
    }
    const Result<int64_t> size = TensorBytes(entry.dtype, entry.shape);
    if (!size.ok()) return size.status().At(where);
    if (entry.end - entry.begin != *size) {
      return DataLoss(where, ": ", offsets, ": must span ", *size, " bytes, which ",
                      DtypeName(entry.dtype), " of shape ", ShapeText(entry.shape), " takes");
    }
    expected = entry.end;
    last = where;
  }
  if (expected != data_bytes) {
    return DataLoss(last, ": ends the data at byte ", expected, ", but the file holds ", data_bytes,
                    " bytes of data: tensors must cover it (is the file truncated?)");
  }
  return Status::Ok();
}

}  // namespace pace
