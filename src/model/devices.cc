#include "model/devices.h"

#include "core/printable.h"
#include "model/cuda/cuda_decoder.h"

namespace pace {

Result<DeviceKind> ParseDevice(std::string_view name) {
  if (name == "cpu") return DeviceKind::kCpu;
  if (name == "cuda") return DeviceKind::kCuda;
  return InvalidArgument("device = ", Printable(name), ": must be cpu or cuda");
}

std::string_view DeviceName(DeviceKind device) {
  return device == DeviceKind::kCpu ? "cpu" : "cuda";
}

Result<std::unique_ptr<Decoder>> CreateDecoder(DeviceKind device, const ModelConfig& config,
                                               const DecoderOptions& options) {
  return device == DeviceKind::kCpu ? CreateCpuDecoder(config, options)
                                    : CreateCudaDecoder(config, options);
}

}  // namespace pace
