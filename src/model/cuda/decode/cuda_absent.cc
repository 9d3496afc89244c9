// A build without CUDA.
#include "model/cuda/decode/cuda_decoder.h"

namespace pace {
namespace {

Status Absent() {
  return Unavailable("device = cuda: this build has no CUDA (cmake --preset cuda builds with it)");
}

}  // namespace

bool HasCuda() {
  return false;
}

Result<std::unique_ptr<Decoder>> CreateCudaDecoder(const ModelConfig& /*config*/,
                                                   const DecoderOptions& /*options*/) {
  return Absent();
}

Result<std::shared_ptr<const DecoderWeights>> RandomCudaWeights(const Decoder& /*decoder*/,
                                                                uint64_t /*seed*/,
                                                                double /*deviation*/) {
  return Absent();
}

Result<std::vector<DecodePart>> ProfileCudaPass(Decoder& /*decoder*/, const Pass& /*pass*/) {
  return Absent();
}

Result<int64_t> CountCudaExperts(Decoder& /*decoder*/, const Pass& /*pass*/) {
  return Absent();
}

Result<CudaDevice> FindCudaDevice() {
  return Absent();
}

Result<double> MeasureCudaBandwidth() {
  return Absent();
}

Result<double> MeasureCudaProducts() {
  return Absent();
}

Status CopyFromCuda(std::span<const std::byte> /*from*/, std::span<std::byte> /*to*/) {
  return Absent();
}

}  // namespace pace
