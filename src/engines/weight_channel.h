// WeightChannel: weights for the workers of one server, sent beside HTTP.
//
//   PACE_ASSIGN_OR_RETURN(const std::unique_ptr<WeightChannel> channel, open(peer));
//   Post(dialect.OpenChannel(channel->Invitation()));  // answered when the workers know of it
//   PACE_RETURN_IF_ERROR(channel->Join());
//   const UpdateCall call = dialect.Update(weights, label, rule, channel->Invitation())[1];
//   Post(call.http);  // answered when the workers have these tensors
//   PACE_RETURN_IF_ERROR(channel->Send(weights, call.sends));
//
// The calls to the server are the caller's, on another thread. Join and Send wait for the workers,
// at most until their deadlines. After an error the channel is of no more use. One channel for each
// server: what breaks one leaves the others alone.
// Thread-safety: one thread at a time, which may change; Cancel from any thread.
#ifndef PACE_ENGINES_WEIGHT_CHANNEL_H_
#define PACE_ENGINES_WEIGHT_CHANNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/concat.h"
#include "core/status.h"
#include "engines/packed_chunks.h"
#include "model/weight_set.h"

namespace pace {

// What a server has to know of a channel. A dialect tells it what its servers ask for.
struct ChannelInvitation {
  int64_t num_workers = 1;   // of the server
  std::string id = {};       // NCCL's, of the group
  std::string group = {};    // its name: no other channel has it
  std::string address = {};  // where workers that join through PyTorch find the id
  int64_t port = 0;
  bool packed = true;  // several tensors in one broadcast
  int64_t buffer_bytes = int64_t{1} << 30;

  std::string NameForErrors() const {
    if (address.empty()) return "the weight channel";
    return Concat("the weight channel (workers call ", address, " port ", port,
                  ", as engine.transfer_address and engine.transfer_port say)");
  }
};

class WeightChannel {
 public:
  virtual ~WeightChannel() = default;
  virtual ChannelInvitation Invitation() const = 0;
  virtual Status Join() = 0;
  // Returns when the workers can have all of these tensors.
  virtual Status Send(const WeightSet& weights, std::span<const WeightChunk> chunks) = 0;
  // Join and Send return soon, with an error.
  virtual void Cancel() = 0;
};

// The server at the other end.
struct ChannelPeer {
  int64_t num_workers = 1;
  std::string our_address = {};  // this machine's, on the way to the server
};

// Makes a channel, at each call a new one.
using OpenWeightChannel =
    std::function<Result<std::unique_ptr<WeightChannel>>(const ChannelPeer& peer)>;

}  // namespace pace

#endif  // PACE_ENGINES_WEIGHT_CHANNEL_H_
