// What there is to know about the GPU.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <memory>

#include "model/cuda/decode/cuda_decoder.h"
#include "model/cuda/device_memory.h"
#include "model/cuda/kernels.h"
#include "model/cuda/matrix_product.h"

namespace pace {
namespace {

using cuda::BytesOf;
using cuda::DeviceMemory;
using cuda::Element;
using cuda::ToStatus;

std::string VersionText(int version) {
  return Concat(version / 1000, ".", version % 1000 / 10);
}

// Of work on the default stream, as a mean of several runs after two that are not counted.
Result<double> SecondsOf(const std::function<Status()>& run) {
  constexpr int kRounds = 10;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  PACE_RETURN_IF_ERROR(ToStatus(cudaEventCreate(&begin), "event"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaEventCreate(&end), "event"));
  Status status;
  for (int round = 0; round < kRounds + 2 && status.ok(); ++round) {
    if (round == 2) status = ToStatus(cudaEventRecord(begin), "event");
    if (status.ok()) status = run();
  }
  if (status.ok()) status = ToStatus(cudaEventRecord(end), "event");
  if (status.ok()) status = ToStatus(cudaEventSynchronize(end), "event");
  float milliseconds = 0;
  if (status.ok()) status = ToStatus(cudaEventElapsedTime(&milliseconds, begin, end), "event");
  (void)cudaEventDestroy(begin);
  (void)cudaEventDestroy(end);
  PACE_RETURN_IF_ERROR(status);
  return 1e-3 * static_cast<double>(milliseconds) / kRounds;
}

}  // namespace

bool HasCuda() {
  return true;
}

Result<CudaDevice> FindCudaDevice() {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    return Unavailable("device = cuda: no GPU: ",
                       found == cudaSuccess ? "none was found" : cudaGetErrorString(found));
  }
  cudaDeviceProp properties{};
  PACE_RETURN_IF_ERROR(ToStatus(cudaGetDeviceProperties(&properties, 0), "device"));
  size_t free = 0;
  size_t total = 0;
  PACE_RETURN_IF_ERROR(ToStatus(cudaMemGetInfo(&free, &total), "device"));
  int driver = 0;
  int runtime = 0;
  PACE_RETURN_IF_ERROR(ToStatus(cudaDriverGetVersion(&driver), "device"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaRuntimeGetVersion(&runtime), "device"));
  return CudaDevice{.name = properties.name,
                    .driver = VersionText(driver),
                    .runtime = VersionText(runtime),
                    .cublas = Concat(cublasLtGetVersion()),
                    .capability = 10 * properties.major + properties.minor,
                    .num_processors = properties.multiProcessorCount,
                    .memory_bytes = static_cast<int64_t>(total),
                    .free_bytes = static_cast<int64_t>(free)};
}

Result<double> MeasureCudaBandwidth() {
  constexpr int64_t kBytes = int64_t{2} << 30;
  PACE_ASSIGN_OR_RETURN(const DeviceMemory from, DeviceMemory::Allocate(kBytes, "bandwidth"));
  PACE_ASSIGN_OR_RETURN(const DeviceMemory to, DeviceMemory::Allocate(kBytes, "bandwidth"));
  PACE_ASSIGN_OR_RETURN(const double seconds, SecondsOf([&] {
                          return ToStatus(
                              cudaMemcpyAsync(to.at(), from.at(), kBytes, cudaMemcpyDeviceToDevice),
                              "bandwidth");
                        }));
  return 2.0 * static_cast<double>(kBytes) / seconds;
}

Result<double> MeasureCudaProducts() {
  constexpr int64_t kSize = 8192;
  constexpr int64_t kBytes = kSize * kSize * BytesOf(Element::kHalf);
  PACE_ASSIGN_OR_RETURN(const DeviceMemory a, DeviceMemory::Allocate(kBytes, "products"));
  PACE_ASSIGN_OR_RETURN(const DeviceMemory b, DeviceMemory::Allocate(kBytes, "products"));
  PACE_ASSIGN_OR_RETURN(const DeviceMemory out, DeviceMemory::Allocate(kBytes, "products"));
  // Products of zeros are faster.
  cuda::FillRandom(a.at(), Element::kHalf, kSize, kSize, kSize, 1, 0.0F, 1.0F, nullptr);
  cuda::FillRandom(b.at(), Element::kHalf, kSize, kSize, kSize, 2, 0.0F, 1.0F, nullptr);
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<cuda::MatrixProduct> products,
                        cuda::MatrixProduct::Create());
  const cuda::Product product{.weight = a.at(),
                              .x = b.at(),
                              .out = out.at(),
                              .num_rows = kSize,
                              .num_outputs = kSize,
                              .num_inputs = kSize,
                              .out_stride = kSize,
                              .element = Element::kHalf,
                              .out_element = Element::kHalf};
  PACE_ASSIGN_OR_RETURN(const double seconds,
                        SecondsOf([&] { return products->Run(product, nullptr); }));
  return 2.0 * kSize * kSize * kSize / seconds;
}

Status CopyFromCuda(std::span<const std::byte> from, std::span<std::byte> to) {
  return cuda::ToStatus(cudaMemcpy(to.data(), from.data(), from.size(), cudaMemcpyDeviceToHost),
                        "weights");
}

}  // namespace pace
