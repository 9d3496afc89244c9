#include "ranks/gpu_ranks.h"

#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <utility>

#include "nccl/nccl_group.h"
#include "ranks/gpu_agreement.h"

namespace pace {
namespace {

class TorchStream final : public GpuStream {
 public:
  void* handle() const override { return stream_.stream(); }
  Result<bool> IsIdle() override {
    const cudaError_t error = cudaStreamQuery(stream_.stream());
    if (error == cudaSuccess) return true;
    if (error == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    return Unavailable("CUDA: ", cudaGetErrorString(error));
  }

 private:
  const c10::cuda::CUDAStream stream_ = c10::cuda::getCurrentCUDAStream();
};

Result<NcclType> TypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return NcclType::kFloat32;
    case at::kBFloat16:
      return NcclType::kBfloat16;
    case at::kHalf:
      return NcclType::kFloat16;
    case at::kDouble:
      return NcclType::kFloat64;
    case at::kLong:
      return NcclType::kInt64;
    case at::kInt:
      return NcclType::kInt32;
    case at::kByte:
      return NcclType::kUint8;
    default:
      return InvalidArgument("a tensor of ", c10::toString(tensor.scalar_type()),
                             ": NCCL has no such type");
  }
}

size_t CountOf(const at::Tensor& tensor) {
  return static_cast<size_t>(tensor.numel());
}

class NcclRanks final : public GpuCollectives {
 public:
  explicit NcclRanks(std::unique_ptr<NcclGroup> group) : group_(std::move(group)) {}

  Status Sum(const at::Tensor& tensor) override {
    PACE_ASSIGN_OR_RETURN(const NcclType type, TypeOf(tensor));
    TorchStream stream;
    PACE_RETURN_IF_ERROR(
        group_->AllReduce(tensor.data_ptr(), tensor.data_ptr(), CountOf(tensor), type, stream));
    return group_->Wait(stream);
  }
  Status SumParts(const at::Tensor& all, const at::Tensor& own) override {
    PACE_ASSIGN_OR_RETURN(const NcclType type, TypeOf(all));
    TorchStream stream;
    PACE_RETURN_IF_ERROR(
        group_->ReduceScatter(all.data_ptr(), own.data_ptr(), CountOf(own), type, stream));
    return group_->Wait(stream);
  }
  Status Collect(const at::Tensor& own, const at::Tensor& all) override {
    PACE_ASSIGN_OR_RETURN(const NcclType type, TypeOf(own));
    TorchStream stream;
    PACE_RETURN_IF_ERROR(
        group_->AllGather(own.data_ptr(), all.data_ptr(), CountOf(own), type, stream));
    return group_->Wait(stream);
  }
  Status Send(const at::Tensor& tensor, int64_t root) override {
    PACE_ASSIGN_OR_RETURN(const NcclType type, TypeOf(tensor));
    TorchStream stream;
    PACE_RETURN_IF_ERROR(group_->Broadcast(tensor.data_ptr(), tensor.data_ptr(), CountOf(tensor),
                                           type, root, stream));
    return group_->Wait(stream);
  }

 private:
  const std::unique_ptr<NcclGroup> group_;
};

// This rank's part of the agreement.
Result<const NcclCalls*> FindGpuAndNccl() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    static_cast<void>(cudaGetLastError());
    return Unavailable("no GPU: ",
                       error == cudaSuccess ? "none is visible" : cudaGetErrorString(error));
  }
  // NCCL takes the current device, and makes no context itself.
  const cudaError_t made = cudaFree(nullptr);
  if (made != cudaSuccess) return Unavailable("no GPU: ", cudaGetErrorString(made));
  return LoadNccl();
}

}  // namespace

Status ConnectGpus(Communicator& ranks, const RankOptions& options) {
  const Result<const NcclCalls*> found = FindGpuAndNccl();
  int version = 0;
  if (found.ok()) static_cast<void>((*found)->get_version(&version));
  PACE_RETURN_IF_ERROR(
      AgreeOnGpus(ranks, found.status(), Concat("NCCL ", NcclVersionText(version))));
  const NcclCalls& calls = **found;
  std::string bytes;
  if (ranks.rank() == 0) {
    // An error is told as a text of another length.
    const Result<NcclId> id = NcclGroup::MakeId(calls);
    bytes = id.ok() ? std::string(id->bytes.data(), id->bytes.size()) : id.status().message();
  }
  PACE_RETURN_IF_ERROR(ranks.BroadcastBytes(bytes, 0));
  NcclId id;
  if (bytes.size() != id.bytes.size()) return Unavailable(bytes);
  std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<NcclGroup> group,
                        NcclGroup::Join(calls, id,
                                        {.rank = ranks.rank(),
                                         .size = ranks.size(),
                                         .join = options.join,
                                         .collective = options.collective,
                                         .lost = [&ranks] { return ranks.lost(); }}));
  ranks.UseForGpus(std::make_unique<NcclRanks>(std::move(group)));
  return Status::Ok();
}

}  // namespace pace
