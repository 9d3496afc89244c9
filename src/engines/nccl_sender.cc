#include "engines/nccl_sender.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/json_writer.h"
#include "engines/packed_chunks.h"
#include "http/message.h"

namespace pace {
namespace {

struct WireType {
  const char* name;  // torch's
  NcclType type;
  size_t width;
};

// A WeightSet has no others.
WireType WireTypeOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return {"float32", NcclType::kFloat32, 4};
    case Dtype::kF16:
      return {"float16", NcclType::kFloat16, 2};
    default:
      PACE_CHECK(dtype == Dtype::kBF16, "dtype ", static_cast<int>(dtype));
      return {"bfloat16", NcclType::kBfloat16, 2};
  }
}

}  // namespace

Result<NcclInvitation> NcclInvitation::Make(const NcclCalls& calls,
                                            const NcclSenderOptions& options) {
  PACE_ASSIGN_OR_RETURN(const NcclId id, NcclGroup::MakeId(calls));
  return NcclInvitation{.id = id, .options = options};
}

std::string NcclInvitation::InitInfo() const {
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("init_info");
  json.BeginObject();
  json.Put("nccl_unique_id_b64", EncodeBase64({id.bytes.data(), id.bytes.size()}));
  json.Put("rank_offset", 1);
  json.Put("world_size", options.num_workers + 1);
  json.Put("packed", options.packed);
  json.Put("packed_buffer_size_bytes", options.buffer_bytes);
  json.Put("packed_num_buffers", 2);
  json.EndObject();
  json.EndObject();
  return body;
}

Result<std::unique_ptr<NcclSender>> NcclSender::Join(const NcclCalls& calls,
                                                     std::unique_ptr<TransferGpu> gpu,
                                                     const NcclInvitation& invitation) {
  const NcclSenderOptions& options = invitation.options;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<NcclGroup> group,
                        NcclGroup::Join(calls, invitation.id,
                                        {.rank = 0,
                                         .size = options.num_workers + 1,
                                         .join = options.join,
                                         .collective = options.join}));
  // What each worker does first.
  const float zero = 0;
  PACE_ASSIGN_OR_RETURN(void* const one, gpu->Buffer(sizeof(zero)));
  PACE_RETURN_IF_ERROR(gpu->Copy(one, &zero, sizeof(zero)));
  PACE_RETURN_IF_ERROR(group->AllReduce(one, one, 1, NcclType::kFloat32, *gpu));
  PACE_RETURN_IF_ERROR(group->Wait(*gpu));
  return std::unique_ptr<NcclSender>(new NcclSender(options, std::move(gpu), std::move(group)));
}

std::string NcclSender::UpdateInfo(const WeightSet& weights) {
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("update_info");
  json.BeginObject();
  json.Key("names");
  json.BeginArray();
  for (const auto& [name, view] : weights.views()) json.Value(name);
  json.EndArray();
  json.Key("dtype_names");
  json.BeginArray();
  for (const auto& [name, view] : weights.views()) json.Value(WireTypeOf(view.dtype).name);
  json.EndArray();
  json.Key("shapes");
  json.BeginArray();
  for (const auto& [name, view] : weights.views()) {
    json.BeginArray();
    for (const int64_t size : view.shape) json.Value(size);
    json.EndArray();
  }
  json.EndArray();
  json.EndObject();
  json.EndObject();
  return body;
}

Status NcclSender::Send(const WeightSet& weights) {
  group_->BeginDeadline(options_.deadline);
  PACE_RETURN_IF_ERROR(options_.packed ? SendChunks(weights) : SendTensors(weights));
  return group_->Wait(*gpu_);
}

Status NcclSender::SendTensors(const WeightSet& weights) {
  const bool on_gpu = weights.residence() == Residence::kDevice;
  size_t largest = 0;
  for (const auto& [name, view] : weights.views()) largest = std::max(largest, view.bytes.size());
  void* buffer = nullptr;
  if (!on_gpu) {
    PACE_ASSIGN_OR_RETURN(buffer, gpu_->Buffer(largest));
  }
  for (const auto& [name, view] : weights.views()) {
    const WireType wire = WireTypeOf(view.dtype);
    const void* from = view.bytes.data();
    if (!on_gpu) {
      PACE_RETURN_IF_ERROR(group_->Wait(*gpu_));
      PACE_RETURN_IF_ERROR(gpu_->Copy(buffer, view.bytes.data(), view.bytes.size()));
      from = buffer;
    }
    // The sender receives nothing: `to` is not written where it is `from`.
    PACE_RETURN_IF_ERROR(group_->Broadcast(from, const_cast<void*>(from),
                                           view.bytes.size() / wire.width, wire.type, 0, *gpu_));
  }
  return Status::Ok();
}

// Copies and broadcasts are in one stream, so that one buffer is enough: each chunk is copied when
// the one before it is sent. A copy within the GPU is short beside the broadcast. A copy from the
// host may wait for the stream in CUDA, without a deadline, so it begins when the stream is idle.
Status NcclSender::SendChunks(const WeightSet& weights) {
  std::vector<const TensorView*> tensors;
  std::vector<int64_t> sizes;
  for (const auto& [name, view] : weights.views()) {
    tensors.push_back(&view);
    sizes.push_back(static_cast<int64_t>(view.bytes.size()));
  }
  const std::vector<WeightChunk> chunks = CutChunks(sizes, options_.buffer_bytes);
  int64_t largest = 0;
  for (const WeightChunk& chunk : chunks) largest = std::max(largest, chunk.num_bytes);
  PACE_ASSIGN_OR_RETURN(void* const buffer, gpu_->Buffer(static_cast<size_t>(largest)));
  for (const WeightChunk& chunk : chunks) {
    if (weights.residence() == Residence::kHost) PACE_RETURN_IF_ERROR(group_->Wait(*gpu_));
    auto* to = static_cast<std::byte*>(buffer);
    for (size_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
      PACE_RETURN_IF_ERROR(gpu_->Copy(to, tensors[i]->bytes.data(), tensors[i]->bytes.size()));
      to += tensors[i]->bytes.size();
    }
    PACE_RETURN_IF_ERROR(group_->Broadcast(buffer, buffer, static_cast<size_t>(chunk.num_bytes),
                                           NcclType::kUint8, 0, *gpu_));
  }
  return Status::Ok();
}

}  // namespace pace
