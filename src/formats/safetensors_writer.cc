#include "formats/safetensors_writer.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <tuple>
#include <vector>

#include "core/atomic_file.h"
#include "core/json_writer.h"
#include "core/printable.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"

namespace pace {
namespace {

using Named = TensorViews::value_type;

// As the package's JSON library escapes: short forms where JSON has them.
void AppendText(std::string& out, std::string_view text) {
  AppendJsonText(out, text, /*short_forms=*/true);
}

std::vector<const Named*> InFileOrder(const TensorViews& tensors) {
  std::vector<const Named*> ordered;
  for (const Named& named : tensors) ordered.push_back(&named);
  std::sort(ordered.begin(), ordered.end(), [](const Named* left, const Named* right) {
    return std::tie(right->second.dtype, left->first) < std::tie(left->second.dtype, right->first);
  });
  return ordered;
}

void AppendEntry(std::string& out, const Named& named, size_t begin) {
  AppendText(out, named.first);
  out += Concat(":{\"dtype\":\"", DtypeName(named.second.dtype), "\",\"shape\":[");
  for (size_t i = 0; i < named.second.shape.size(); ++i) {
    if (i > 0) out += ',';
    AppendTo(out, named.second.shape[i]);
  }
  out += Concat("],\"data_offsets\":[", begin, ",", begin + named.second.bytes.size(), "]}");
}

std::string HeaderText(const std::vector<const Named*>& ordered,
                       const std::optional<SafetensorsMetadata>& metadata) {
  std::string out = "{";
  const auto separate = [&out] {
    if (out.back() != '{') out += ',';
  };
  if (metadata.has_value()) {
    out += "\"__metadata__\":{";
    for (const auto& [key, value] : *metadata) {
      separate();
      AppendText(out, key);
      out += ':';
      AppendText(out, value);
    }
    out += '}';
  }
  size_t begin = 0;
  for (const Named* const named : ordered) {
    separate();
    AppendEntry(out, *named, begin);
    begin += named->second.bytes.size();
  }
  out += '}';
  out.resize((out.size() + 7) / 8 * 8, ' ');
  return out;
}

int64_t TotalBytes(const TensorViews& tensors) {
  int64_t total = 0;
  for (const auto& [name, tensor] : tensors) total += static_cast<int64_t>(tensor.bytes.size());
  return total;
}

// Our own reader must take what we write; it also finds names that are not
// UTF-8 and bytes that do not fit the shape.
Status CheckHeader(const std::string& text, const TensorViews& tensors) {
  if (tensors.contains("__metadata__")) {
    return InvalidArgument("tensor __metadata__: the name is reserved");
  }
  if (static_cast<int64_t>(text.size()) > kMaxSafetensorsHeaderBytes) {
    return InvalidArgument("header length = ", text.size(),
                           ": must be <= ", kMaxSafetensorsHeaderBytes, " (write shards)");
  }
  PACE_ASSIGN_OR_RETURN(const SafetensorsHeader header, ParseSafetensorsHeader(text));
  return CheckSafetensorsLayout(header, TotalBytes(tensors));
}

std::vector<TensorViews> Split(const TensorViews& tensors, int64_t max_shard_bytes) {
  std::vector<TensorViews> shards(1);
  int64_t used = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto size = static_cast<int64_t>(tensor.bytes.size());
    if (!shards.back().empty() && size > max_shard_bytes - used) {
      shards.emplace_back();
      used = 0;
    }
    // An oversized tensor leaves nothing for others: used is then above the limit.
    used += size;
    shards.back().emplace_hint(shards.back().end(), name, tensor);
  }
  return shards;
}

std::string FiveDigits(size_t number) {
  const std::string digits = Concat(number);
  return std::string(5 - std::min<size_t>(digits.size(), 5), '0') + digits;
}

Status CheckFolderHasNoWeights(const std::string& folder) {
  PACE_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files::Default().List(folder));
  for (const std::string& name : names) {
    const bool shard = name.starts_with("model-") && name.ends_with(".safetensors");
    if (shard || name == kSafetensorsFileName || name == kSafetensorsIndexName) {
      return InvalidArgument(folder, ": already holds ", Printable(name),
                             ": write into a folder without weights");
    }
  }
  return Status::Ok();
}

std::string IndexText(const std::vector<TensorViews>& shards, const std::vector<std::string>& names,
                      int64_t total_bytes) {
  std::string out = Concat("{\n  \"metadata\": {\n    \"total_size\": ", total_bytes,
                           "\n  },\n  \"weight_map\": {");
  // Shards hold the names in order, so going through them keeps the order.
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const auto& [name, tensor] : shards[i]) {
      out += out.back() == '{' ? "\n    " : ",\n    ";
      AppendText(out, name);
      out += ": ";
      AppendText(out, names[i]);
    }
  }
  out += "\n  }\n}\n";
  return out;
}

}  // namespace

Status WriteSafetensors(const std::string& path, const TensorViews& tensors,
                        const std::optional<SafetensorsMetadata>& metadata) {
  const std::vector<const Named*> ordered = InFileOrder(tensors);
  const std::string header = HeaderText(ordered, metadata);
  PACE_RETURN_IF_ERROR(CheckHeader(header, tensors).At(path));

  PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  const uint64_t length = header.size();
  char length_bytes[sizeof(length)];
  std::memcpy(length_bytes, &length, sizeof(length));
  PACE_RETURN_IF_ERROR(file.Append(std::string_view(length_bytes, sizeof(length))));
  PACE_RETURN_IF_ERROR(file.Append(header));
  for (const Named* const named : ordered) {
    PACE_RETURN_IF_ERROR(file.Append(named->second.bytes));
  }
  return file.Commit();
}

Status WriteShardedSafetensors(const std::string& folder, const TensorViews& tensors,
                               const std::optional<SafetensorsMetadata>& metadata,
                               int64_t max_shard_bytes) {
  PACE_CHECK(max_shard_bytes > 0, "max_shard_bytes = ", max_shard_bytes);
  PACE_RETURN_IF_ERROR(CheckFolderHasNoWeights(folder));
  const std::filesystem::path base(folder);
  const std::vector<TensorViews> shards = Split(tensors, max_shard_bytes);
  if (shards.size() == 1) {
    return WriteSafetensors((base / kSafetensorsFileName).string(), tensors, metadata);
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < shards.size(); ++i) {
    names.push_back(
        Concat("model-", FiveDigits(i + 1), "-of-", FiveDigits(shards.size()), ".safetensors"));
    PACE_RETURN_IF_ERROR(WriteSafetensors((base / names[i]).string(), shards[i], metadata));
  }
  return WriteFileAtomically((base / kSafetensorsIndexName).string(),
                             IndexText(shards, names, TotalBytes(tensors)));
}

}  // namespace pace
