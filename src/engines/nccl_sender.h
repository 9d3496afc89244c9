// NcclSender: sends weights to the workers of one engine, over NCCL.
//
//   PACE_ASSIGN_OR_RETURN(const NcclInvitation invitation, NcclInvitation::Make(calls, options));
//   PACE_ASSIGN_OR_RETURN(const std::unique_ptr<NcclSender> sender,
//                         NcclSender::Join(calls, std::move(gpus), invitation));
//   PACE_RETURN_IF_ERROR(sender->Send(weights, ChunksOf(weights, options.buffer_bytes)));
//
// The calls to the server are the caller's, on another thread: the server answers them only after
// NCCL's part. One group for each engine, so that an engine that dies costs its own sync alone:
// Send returns within its deadline and one second, and the sender is of no more use. Weights on the
// GPU are sent from there, gathered in a buffer where a chunk has several tensors; those on the
// host are copied to the GPU chunk by chunk. Two chunks are in flight at a time, in two streams.
//
// Protocol: the sender is member 0 and the engine's workers are 1 to num_workers. With `greets`,
// every member makes an all-reduce of one float32 as soon as it has joined (vLLM 0.30 and later,
// backend nccl). Then one broadcast for each tensor, or packed: one of uint8 for each chunk
// (packed_chunks.h). A PyTorch process group, as SGLang's workers have, joins NCCL's group in its
// first broadcast and not before.
// Thread-safety: none; one thread at a time, which may change.
#ifndef PACE_ENGINES_NCCL_SENDER_H_
#define PACE_ENGINES_NCCL_SENDER_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/status.h"
#include "engines/packed_chunks.h"
#include "model/weight_set.h"
#include "nccl/nccl_group.h"
#include "nccl/transfer_gpu.h"

namespace pace {

struct NcclSenderOptions {
  int64_t num_workers = 1;  // of the engine: tensor x pipeline x data parallel
  bool greets = true;
  // Several tensors in one broadcast; thousands of experts need it.
  bool packed = true;
  // Both sides hold two buffers of this size, and with CutChunks one tensor more.
  int64_t buffer_bytes = int64_t{1} << 30;
  std::chrono::milliseconds join{120'000};
  std::chrono::milliseconds deadline{120'000};  // of Send
  // Asked while Join or Send waits; an error ends the wait. May be empty.
  std::function<Status()> lost = {};
};

// A new group, which the engine is told of so that its workers join.
struct NcclInvitation {
  NcclId id = {};
  NcclSenderOptions options = {};

  static Result<NcclInvitation> Make(const NcclCalls& calls, const NcclSenderOptions& options);
};

class NcclSender {
 public:
  static constexpr size_t kNumStreams = 2;
  using Gpus = std::array<std::unique_ptr<TransferGpu>, kNumStreams>;  // of one GPU

  // Waits for the workers. `calls` outlive it.
  static Result<std::unique_ptr<NcclSender>> Join(const NcclCalls& calls, Gpus gpus,
                                                  const NcclInvitation& invitation);
  // Returns when the workers can have these tensors. `weights` stay until then.
  Status Send(const WeightSet& weights, std::span<const WeightChunk> chunks);

 private:
  NcclSender(const NcclSenderOptions& options, Gpus gpus, std::unique_ptr<NcclGroup> group)
      : options_(options), gpus_(std::move(gpus)), group_(std::move(group)) {}
  Status Send(const void* from, size_t count, NcclType type, TransferGpu& gpu);
  Status SendTensors(std::span<const TensorView* const> tensors, bool on_gpu);
  Status SendChunks(std::span<const TensorView* const> tensors, bool on_gpu,
                    std::span<const WeightChunk> chunks);

  const NcclSenderOptions options_;
  const Gpus gpus_;  // outlive the group's work
  const std::unique_ptr<NcclGroup> group_;
  bool is_connected_ = false;  // for broadcasts
};

}  // namespace pace

#endif  // PACE_ENGINES_NCCL_SENDER_H_
