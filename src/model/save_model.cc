// SaveModel: a folder that transformers reads.
#include <cstring>
#include <filesystem>
#include <list>

#include "core/atomic_file.h"
#include "core/check.h"
#include "formats/half.h"
#include "formats/safetensors_writer.h"
#include "model/weight_set.h"

namespace pace {
namespace {

std::vector<std::byte> Converted(const TensorView& tensor, Dtype dtype) {
  const auto bits = static_cast<size_t>(BitsPerElement(tensor.dtype));
  std::vector<float> floats(tensor.bytes.size() * 8 / bits);
  ReadFloats(tensor, floats);
  std::vector<std::byte> bytes;
  if (dtype == Dtype::kF32) {
    bytes.resize(floats.size() * sizeof(float));
    if (!floats.empty()) std::memcpy(bytes.data(), floats.data(), bytes.size());
    return bytes;
  }
  bytes.resize(floats.size() * sizeof(uint16_t));
  for (size_t i = 0; i < floats.size(); ++i) {
    const uint16_t half = dtype == Dtype::kF16 ? FloatToF16(floats[i]) : FloatToBF16(floats[i]);
    std::memcpy(bytes.data() + i * sizeof(half), &half, sizeof(half));
  }
  return bytes;
}

}  // namespace

Status SaveModel(const std::string& folder, const ModelConfig& config, const WeightSet& weights,
                 Dtype dtype, int64_t max_shard_bytes) {
  if (dtype != Dtype::kF32 && dtype != Dtype::kF16 && dtype != Dtype::kBF16) {
    return InvalidArgument("dtype = ", DtypeName(dtype), ": must be F32, F16 or BF16");
  }
  if (max_shard_bytes <= 0) {
    return InvalidArgument("max_shard_bytes = ", max_shard_bytes, ": must be > 0");
  }
  PACE_RETURN_IF_ERROR(CreateFolders(folder));

  TensorViews views;
  std::list<std::vector<std::byte>> converted;
  for (const Parameter& parameter : ParametersOf(config)) {
    TensorView view = weights.Get(parameter.name);
    if (view.dtype != dtype) {
      view.bytes = converted.emplace_back(Converted(view, dtype));
      view.dtype = dtype;
    }
    views.emplace(parameter.name, std::move(view));
  }
  // The config comes last: a folder that has one is whole.
  PACE_RETURN_IF_ERROR(WriteShardedSafetensors(folder, views, kPyTorchMetadata, max_shard_bytes));
  ModelConfig stored = config;
  stored.dtype = dtype;
  const std::filesystem::path path = folder;
  PACE_RETURN_IF_ERROR(WriteFileAtomically((path / "generation_config.json").string(),
                                           GenerationConfigJson(stored)));
  return WriteFileAtomically((path / "config.json").string(), ModelConfigJson(stored));
}

}  // namespace pace
