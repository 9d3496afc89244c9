#include "nccl/transfer_gpu.h"

namespace pace {

Result<std::unique_ptr<TransferGpu>> OpenTransferGpu() {
  return Unavailable("device = cuda: this build has no CUDA (cmake --preset cuda builds with it)");
}

}  // namespace pace
