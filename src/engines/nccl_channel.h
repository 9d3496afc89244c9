// A WeightChannel for vLLM's backend nccl, from this process's GPU.
#ifndef PACE_ENGINES_NCCL_CHANNEL_H_
#define PACE_ENGINES_NCCL_CHANNEL_H_

#include <memory>

#include "core/status.h"
#include "engines/nccl_sender.h"
#include "engines/weight_channel.h"

namespace pace {

// `options.lost` is the channel's own. An error without CUDA or NCCL.
Result<std::unique_ptr<WeightChannel>> OpenNcclChannel(const NcclSenderOptions& options);

// The same with NCCL and streams of the caller; `calls` outlive the channel.
Result<std::unique_ptr<WeightChannel>> OpenNcclChannel(const NcclCalls& calls,
                                                       NcclSender::Gpus gpus,
                                                       const NcclSenderOptions& options);

}  // namespace pace

#endif  // PACE_ENGINES_NCCL_CHANNEL_H_
