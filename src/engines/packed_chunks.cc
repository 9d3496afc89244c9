#include "engines/packed_chunks.h"

#include <iterator>

#include "core/check.h"

namespace pace {
namespace {

struct TorchType {
  std::string_view name;
  int64_t width;
};

// A WeightSet has no others.
TorchType TorchTypeOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return {"float32", 4};
    case Dtype::kF16:
      return {"float16", 2};
    default:
      PACE_CHECK(dtype == Dtype::kBF16, "dtype ", static_cast<int>(dtype));
      return {"bfloat16", 2};
  }
}

}  // namespace

std::vector<WeightChunk> CutChunks(std::span<const int64_t> tensor_bytes, int64_t buffer_bytes) {
  std::vector<WeightChunk> chunks;
  WeightChunk open;
  for (size_t i = 0; i < tensor_bytes.size(); ++i) {
    ++open.count;
    open.num_bytes += tensor_bytes[i];
    if (open.num_bytes <= buffer_bytes) continue;
    chunks.push_back(open);
    open = {.first = i + 1};
  }
  if (open.count > 0) chunks.push_back(open);
  return chunks;
}

std::vector<WeightChunk> CutBuckets(std::span<const TensorSize> tensors, int64_t buffer_bytes) {
  std::vector<WeightChunk> buckets;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSize& tensor = tensors[i];
    const bool fits = !buckets.empty() &&
                      buckets.back().num_bytes + tensor.num_bytes <= buffer_bytes &&
                      buckets.back().num_bytes % tensor.width == 0;
    if (!fits) buckets.push_back({.first = i});
    ++buckets.back().count;
    buckets.back().num_bytes += tensor.num_bytes;
  }
  return buckets;
}

std::vector<WeightChunk> ChunksOf(const WeightSet& weights, int64_t buffer_bytes) {
  std::vector<int64_t> sizes;
  for (const auto& [name, view] : weights.views()) sizes.push_back(std::ssize(view.bytes));
  return CutChunks(sizes, buffer_bytes);
}

std::vector<WeightChunk> BucketsOf(const WeightSet& weights, int64_t buffer_bytes) {
  std::vector<TensorSize> sizes;
  for (const auto& [name, view] : weights.views()) {
    sizes.push_back({std::ssize(view.bytes), TorchTypeOf(view.dtype).width});
  }
  return CutBuckets(sizes, buffer_bytes);
}

void PutTensorLists(JsonWriter& json, const WeightSet& weights, const WeightChunk& chunk,
                    std::string_view types_key) {
  const auto first = std::next(weights.views().begin(), static_cast<std::ptrdiff_t>(chunk.first));
  const auto end = std::next(first, static_cast<std::ptrdiff_t>(chunk.count));
  json.Key("names");
  json.BeginArray();
  for (auto at = first; at != end; ++at) json.Value(at->first);
  json.EndArray();
  json.Key(types_key);
  json.BeginArray();
  for (auto at = first; at != end; ++at) json.Value(TorchTypeOf(at->second.dtype).name);
  json.EndArray();
  json.Key("shapes");
  json.BeginArray();
  for (auto at = first; at != end; ++at) {
    json.BeginArray();
    for (const int64_t size : at->second.shape) json.Value(size);
    json.EndArray();
  }
  json.EndArray();
}

}  // namespace pace
