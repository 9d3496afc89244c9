#include "engines/nccl_sender.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/check.h"
#include "nccl/stay_on_cpu.h"

namespace pace {
namespace {

struct WireType {
  NcclType type;
  size_t width;
};

// A WeightSet has no others.
WireType WireTypeOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return {NcclType::kFloat32, 4};
    case Dtype::kF16:
      return {NcclType::kFloat16, 2};
    default:
      PACE_CHECK(dtype == Dtype::kBF16, "dtype ", static_cast<int>(dtype));
      return {NcclType::kBfloat16, 2};
  }
}

}  // namespace

Result<NcclInvitation> NcclInvitation::Make(const NcclCalls& calls,
                                            const NcclSenderOptions& options) {
  PACE_ASSIGN_OR_RETURN(const NcclId id, NcclGroup::MakeId(calls));
  return NcclInvitation{.id = id, .options = options};
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
  if (options.greets) {
    TransferGpu& gpu = *gpus.front();
    const float zero = 0;
    PACE_ASSIGN_OR_RETURN(void* const one, gpu.Buffer(sizeof(zero)));
    PACE_RETURN_IF_ERROR(gpu.Copy(one, &zero, sizeof(zero)));
    PACE_RETURN_IF_ERROR(group->AllReduce(one, one, 1, NcclType::kFloat32, gpu));
    PACE_RETURN_IF_ERROR(group->Wait(gpu));
  }
  return std::unique_ptr<NcclSender>(new NcclSender(options, std::move(gpus), std::move(group)));
}

Status NcclSender::Send(const WeightSet& weights, std::span<const WeightChunk> chunks) {
  const bool on_gpu = weights.residence() == Residence::kDevice;
  std::vector<const TensorView*> tensors;
  for (const auto& [name, view] : weights.views()) tensors.push_back(&view);
  group_->BeginDeadline(options_.deadline);
  // A group's first broadcast connects it, for which NCCL starts threads that last.
  std::optional<StayOnCpu> here;
  if (is_connected_) here.emplace();
  if (options_.packed) {
    PACE_RETURN_IF_ERROR(SendChunks(tensors, on_gpu, chunks));
  } else {
    for (const WeightChunk& chunk : chunks) {
      PACE_RETURN_IF_ERROR(
          SendTensors(std::span(tensors).subspan(chunk.first, chunk.count), on_gpu));
    }
  }
  for (const auto& gpu : gpus_) PACE_RETURN_IF_ERROR(group_->Wait(*gpu));
  is_connected_ = true;
  return Status::Ok();
}

// The sender receives nothing: `to` is not written where it is `from`.
Status NcclSender::Send(const void* from, size_t count, NcclType type, TransferGpu& gpu) {
  return group_->Broadcast(from, const_cast<void*>(from), count, type, 0, gpu);
}

Status NcclSender::SendTensors(std::span<const TensorView* const> tensors, bool on_gpu) {
  TransferGpu& gpu = *gpus_.front();
  size_t largest = 0;
  for (const TensorView* view : tensors) largest = std::max(largest, view->bytes.size());
  void* buffer = nullptr;
  if (!on_gpu) {
    PACE_ASSIGN_OR_RETURN(buffer, gpu.Buffer(largest));
  }
  for (const TensorView* view : tensors) {
    const WireType wire = WireTypeOf(view->dtype);
    const void* from = view->bytes.data();
    if (!on_gpu) {
      PACE_RETURN_IF_ERROR(group_->Wait(gpu));
      PACE_RETURN_IF_ERROR(gpu.Copy(buffer, view->bytes.data(), view->bytes.size()));
      from = buffer;
    }
    PACE_RETURN_IF_ERROR(Send(from, view->bytes.size() / wire.width, wire.type, gpu));
  }
  return Status::Ok();
}

// A chunk is queued when the one before the last has been sent: its buffer is free then. More in
// flight would not be faster, and where sender and receiver share a GPU kernels of small chunks
// that wait for the receiver keep it from running (3.3 x the time for chunks of 4 MiB).
Status NcclSender::SendChunks(std::span<const TensorView* const> tensors, bool on_gpu,
                              std::span<const WeightChunk> chunks) {
  const auto is_sent_from_its_place = [&](const WeightChunk& chunk) {
    return on_gpu && chunk.count == 1;
  };
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
