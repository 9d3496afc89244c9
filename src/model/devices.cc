#include "model/devices.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "model/cpu/cpu_decoder.h"
#include "model/cuda/decode/cuda_decoder.h"

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

Result<WeightSet> ToHost(const ModelConfig& config, const WeightSet& weights) {
  if (weights.residence() == Residence::kHost) return weights;
  size_t total = 0;
  for (const auto& [name, view] : weights.views()) total += view.bytes.size();
  auto bytes = std::make_shared<std::vector<std::byte>>(total);
  TensorViews views;
  size_t at = 0;
  for (const auto& [name, view] : weights.views()) {
    const std::span<std::byte> target(bytes->data() + at, view.bytes.size());
    PACE_RETURN_IF_ERROR(CopyFromCuda(view.bytes, target));
    views.emplace(name, TensorView{.dtype = view.dtype, .shape = view.shape, .bytes = target});
    at += view.bytes.size();
  }
  return WeightSet::Create(config, std::move(views), std::move(bytes));
}

}  // namespace pace
