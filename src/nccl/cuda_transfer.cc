#include <cuda_runtime_api.h>

#include "nccl/transfer_gpu.h"

namespace pace {
namespace {

Status ToStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return Status::Ok();
  static_cast<void>(cudaGetLastError());
  return Unavailable("CUDA: ", what, ": ", cudaGetErrorString(error));
}

class CudaTransfer final : public TransferGpu {
 public:
  static Result<std::unique_ptr<TransferGpu>> Open() {
    std::unique_ptr<CudaTransfer> made(new CudaTransfer());
    int lowest = 0;
    int highest = 0;
    PACE_RETURN_IF_ERROR(ToStatus(cudaGetDevice(&made->device_), "device"));
    PACE_RETURN_IF_ERROR(ToStatus(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "stream"));
    PACE_RETURN_IF_ERROR(ToStatus(
        cudaStreamCreateWithPriority(&made->stream_, cudaStreamNonBlocking, lowest), "stream"));
    return std::unique_ptr<TransferGpu>(std::move(made));
  }
  // A stream whose work was aborted ends soon; CUDA waits for it here.
  ~CudaTransfer() override {
    if (buffer_ != nullptr) static_cast<void>(cudaFree(buffer_));
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  }

  void* handle() const override { return stream_; }

  Result<bool> IsIdle() override {
    const cudaError_t error = cudaStreamQuery(stream_);
    if (error == cudaSuccess) return true;
    if (error != cudaErrorNotReady) return ToStatus(error, "stream");
    static_cast<void>(cudaGetLastError());
    return false;
  }

  Result<void*> Buffer(size_t num_bytes) override {
    PACE_RETURN_IF_ERROR(ToStatus(cudaSetDevice(device_), "device"));
    if (num_bytes <= size_) return buffer_;
    PACE_RETURN_IF_ERROR(ToStatus(cudaFree(buffer_), "free"));
    buffer_ = nullptr;
    size_ = 0;
    PACE_RETURN_IF_ERROR(ToStatus(cudaMalloc(&buffer_, num_bytes), "buffer of weights"));
    size_ = num_bytes;
    return buffer_;
  }

  Status Copy(void* to, const void* from, size_t num_bytes) override {
    return ToStatus(cudaMemcpyAsync(to, from, num_bytes, cudaMemcpyDefault, stream_), "copy");
  }

 private:
  CudaTransfer() = default;

  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  void* buffer_ = nullptr;
  size_t size_ = 0;
};

}  // namespace

Result<std::unique_ptr<TransferGpu>> OpenTransferGpu() {
  return CudaTransfer::Open();
}

}  // namespace pace
