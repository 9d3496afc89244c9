// Which device a network runs on, as a setting.
//
//   PACE_ASSIGN_OR_RETURN(const DeviceKind device, ParseDevice("cuda"));
//   PACE_ASSIGN_OR_RETURN(const std::unique_ptr<Decoder> decoder,
//                         CreateDecoder(device, config, {.num_blocks = 64}));
//
// Thread-safety: functions of their arguments.
#ifndef PACE_MODEL_DEVICES_H_
#define PACE_MODEL_DEVICES_H_

#include <memory>
#include <string_view>

#include "core/status.h"
#include "model/decoder.h"

namespace pace {

enum class DeviceKind { kCpu, kCuda };

// "cpu" or "cuda".
Result<DeviceKind> ParseDevice(std::string_view name);
std::string_view DeviceName(DeviceKind device);

// A decoder without weights. An error where this build or this machine has no
// such device.
Result<std::unique_ptr<Decoder>> CreateDecoder(DeviceKind device, const ModelConfig& config,
                                               const DecoderOptions& options);

// The same weights in this process's memory; itself where they are there.
Result<WeightSet> ToHost(const ModelConfig& config, const WeightSet& weights);

}  // namespace pace

#endif  // PACE_MODEL_DEVICES_H_
