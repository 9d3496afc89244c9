// TransferGpu: a stream of this process's GPU with a buffer, to send weights from.
//
//   PACE_ASSIGN_OR_RETURN(const std::unique_ptr<TransferGpu> gpu, OpenTransferGpu());
//   PACE_ASSIGN_OR_RETURN(void* const buffer, gpu->Buffer(num_bytes));
//   PACE_RETURN_IF_ERROR(gpu->Copy(buffer, weights, num_bytes));
//
// The stream is its own and has the lowest priority: rollouts and training go first.
// In a build without CUDA OpenTransferGpu returns an error.
// Thread-safety: none; one thread at a time, which may change.
#ifndef PACE_NCCL_TRANSFER_GPU_H_
#define PACE_NCCL_TRANSFER_GPU_H_

#include <cstddef>
#include <memory>

#include "core/status.h"
#include "nccl/nccl_group.h"

namespace pace {

class TransferGpu : public GpuStream {
 public:
  // At least so large; the same as before where that one is large enough. Another one ends the
  // use of the former, for which it waits.
  virtual Result<void*> Buffer(size_t num_bytes) = 0;
  // Queues a copy into the buffer, from the host or the GPU.
  virtual Status Copy(void* to, const void* from, size_t num_bytes) = 0;
};

Result<std::unique_ptr<TransferGpu>> OpenTransferGpu();

}  // namespace pace

#endif  // PACE_NCCL_TRANSFER_GPU_H_
