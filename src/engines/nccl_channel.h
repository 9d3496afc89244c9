// A WeightChannel over NCCL, from this process's GPU.
//
//   PACE_ASSIGN_OR_RETURN(const std::unique_ptr<WeightChannel> to_vllm,
//                         OpenNcclChannel({.num_workers = 2}));
//   PACE_ASSIGN_OR_RETURN(const std::unique_ptr<WeightChannel> to_sglang,
//                         OpenNcclChannel({.num_workers = 2}, meeting));
//
// vLLM's workers are told the id of NCCL's group, and Join waits for them. SGLang's join through a
// process group of PyTorch: they find the id at a meeting and join NCCL's group in their first
// broadcast, so the first Send waits for them and Join for nothing.
#ifndef PACE_ENGINES_NCCL_CHANNEL_H_
#define PACE_ENGINES_NCCL_CHANNEL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/status.h"
#include "engines/nccl_sender.h"
#include "engines/weight_channel.h"

namespace pace {

// A store of keys and values that the workers read (ranks/meeting_store.h).
struct GroupMeeting {
  std::string address = {};  // by which the workers reach it
  int64_t port = 0;
  std::function<Status(const std::string& key, const std::string& value)> put = {};
  std::function<void(const std::string& key)> remove = {};
};

// Where PyTorch's ProcessGroupNCCL of this name looks for the id of its first communicator; the
// value is the id's 128 bytes. PrefixStore joins with "/": SGLang's init_custom_process_group adds
// the name, torch's _new_process_group_helper "NAME/" and "cuda/", and broadcastUniqueNCCLID
// numbers the communicators from 0 on. tests/peers/torch_meeting_test.py holds this against
// PyTorch.
std::string IdKeyOf(const std::string& group);

// `options.lost` and `options.greets` are the channel's own. An error without CUDA or NCCL.
Result<std::unique_ptr<WeightChannel>> OpenNcclChannel(const NcclSenderOptions& options,
                                                       std::optional<GroupMeeting> meeting = {});

// The same with NCCL and streams of the caller; `calls` outlive the channel.
Result<std::unique_ptr<WeightChannel>> OpenNcclChannel(const NcclCalls& calls,
                                                       NcclSender::Gpus gpus,
                                                       const NcclSenderOptions& options,
                                                       std::optional<GroupMeeting> meeting = {});

}  // namespace pace

#endif  // PACE_ENGINES_NCCL_CHANNEL_H_
