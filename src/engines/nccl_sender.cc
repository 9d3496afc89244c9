#include "engines/nccl_sender.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/json_writer.h"
#include "engines/packed_chunks.h"
#include "http/message.h"
#include "nccl/stay_on_cpu.h"

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

Result<std::unique_ptr<NcclSender>> NcclSender::Join(const NcclCalls& calls, Gpus gpus,
                                                     const NcclInvitation& invitation) {
  const NcclSenderOptions& options = invitation.options;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<NcclGroup> group,
                        NcclGroup::Join(calls, invitation.id,
                                        {.rank = 0,
                                         .size = options.num_workers + 1,
                                         .join = options.join,
                                         .collective = options.join,
                                         .lost = options.lost}));
  // What each worker does first.
  TransferGpu& gpu = *gpus.front();
  const float zero = 0;
  PACE_ASSIGN_OR_RETURN(void* const one, gpu.Buffer(sizeof(zero)));
  PACE_RETURN_IF_ERROR(gpu.Copy(one, &zero, sizeof(zero)));
  PACE_RETURN_IF_ERROR(group->AllReduce(one, one, 1, NcclType::kFloat32, gpu));
  PACE_RETURN_IF_ERROR(group->Wait(gpu));
  return std::unique_ptr<NcclSender>(new NcclSender(options, std::move(gpus), std::move(group)));
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
  // A group's first broadcast connects it, for which NCCL starts threads that last.
  std::optional<StayOnCpu> here;
  if (is_connected_) here.emplace();
  PACE_RETURN_IF_ERROR(options_.packed ? SendChunks(weights) : SendTensors(weights));
  for (const auto& gpu : gpus_) PACE_RETURN_IF_ERROR(group_->Wait(*gpu));
  is_connected_ = true;
  return Status::Ok();
}

// The sender receives nothing: `to` is not written where it is `from`.
Status NcclSender::Send(const void* from, size_t count, NcclType type, TransferGpu& gpu) {
  return group_->Broadcast(from, const_cast<void*>(from), count, type, 0, gpu);
}

Status NcclSender::SendTensors(const WeightSet& weights) {
  TransferGpu& gpu = *gpus_.front();
  const bool on_gpu = weights.residence() == Residence::kDevice;
  size_t largest = 0;
  for (const auto& [name, view] : weights.views()) largest = std::max(largest, view.bytes.size());
  void* buffer = nullptr;
  if (!on_gpu) {
    PACE_ASSIGN_OR_RETURN(buffer, gpu.Buffer(largest));
  }
  for (const auto& [name, view] : weights.views()) {
    const WireType wire = WireTypeOf(view.dtype);
    const void* from = view.bytes.data();
    if (!on_gpu) {
      PACE_RETURN_IF_ERROR(group_->Wait(gpu));
      PACE_RETURN_IF_ERROR(gpu.Copy(buffer, view.bytes.data(), view.bytes.size()));
      from = buffer;
    }
    PACE_RETURN_IF_ERROR(Send(from, view.bytes.size() / wire.width, wire.type, gpu));
  }
  return Status::Ok();
}

// A chunk is queued when the one before the last has been sent: its buffer is free then. More in
// flight would not be faster, and where sender and receiver share a GPU kernels of small chunks
// that wait for the receiver keep it from running (3.3 x the time for chunks of 4 MiB).
Status NcclSender::SendChunks(const WeightSet& weights) {
  const bool on_gpu = weights.residence() == Residence::kDevice;
  std::vector<const TensorView*> tensors;
  std::vector<int64_t> sizes;
  for (const auto& [name, view] : weights.views()) {
    tensors.push_back(&view);
    sizes.push_back(static_cast<int64_t>(view.bytes.size()));
  }
  const auto is_sent_from_its_place = [&](const WeightChunk& chunk) {
    return on_gpu && chunk.count == 1;
  };
  const std::vector<WeightChunk> chunks = CutChunks(sizes, options_.buffer_bytes);
  std::array<int64_t, kNumStreams> largest = {};
  for (size_t i = 0; i < chunks.size(); ++i) {
    int64_t& size = largest[i % kNumStreams];
    if (!is_sent_from_its_place(chunks[i])) size = std::max(size, chunks[i].num_bytes);
  }
  std::array<void*, kNumStreams> buffers = {};
  for (size_t i = 0; i < kNumStreams; ++i) {
    PACE_ASSIGN_OR_RETURN(buffers[i], gpus_[i]->Buffer(static_cast<size_t>(largest[i])));
  }
  for (size_t i = 0; i < chunks.size(); ++i) {
    const WeightChunk& chunk = chunks[i];
    TransferGpu& gpu = *gpus_[i % kNumStreams];
    PACE_RETURN_IF_ERROR(group_->Wait(gpu));
    const void* from = tensors[chunk.first]->bytes.data();
    if (!is_sent_from_its_place(chunk)) {
      from = buffers[i % kNumStreams];
      auto* to = static_cast<std::byte*>(buffers[i % kNumStreams]);
      for (size_t k = chunk.first; k < chunk.first + chunk.count; ++k) {
        PACE_RETURN_IF_ERROR(gpu.Copy(to, tensors[k]->bytes.data(), tensors[k]->bytes.size()));
        to += tensors[k]->bytes.size();
      }
    }
    PACE_RETURN_IF_ERROR(Send(from, static_cast<size_t>(chunk.num_bytes), NcclType::kUint8, gpu));
  }
  return Status::Ok();
}

}  // namespace pace
