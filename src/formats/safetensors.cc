#include "formats/safetensors.h"

#include <bit>
#include <cstring>
#include <utility>

#include "formats/safetensors_header.h"

namespace pace {
namespace {

constexpr size_t kLengthBytes = 8;
static_assert(std::endian::native == std::endian::little, "files are little-endian");

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

}  // namespace pace
