// WeightChannel: weights for the workers of one server, sent beside HTTP.
//
//   PACE_ASSIGN_OR_RETURN(const std::unique_ptr<WeightChannel> channel, open(num_workers));
//   Post("/init_weight_transfer_engine", channel->Invitation());  // answered when both have joined
//   PACE_RETURN_IF_ERROR(channel->Join());
//   PACE_RETURN_IF_ERROR(channel->Send(weights));
//
// Join and Send wait for the workers, at most until their deadlines. After an error the channel is
// of no more use. One channel for each server: what breaks one leaves the others alone.
// Thread-safety: one thread at a time, which may change; Cancel from any thread.
#ifndef PACE_ENGINES_WEIGHT_CHANNEL_H_
#define PACE_ENGINES_WEIGHT_CHANNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/status.h"
#include "model/weight_set.h"

namespace pace {

class WeightChannel {
 public:
  virtual ~WeightChannel() = default;
  // What the server is told so that its workers join, in its dialect.
  virtual std::string Invitation() const = 0;
  virtual Status Join() = 0;
  // Returns when the workers can have all of it.
  virtual Status Send(const WeightSet& weights) = 0;
  // Join and Send return soon, with an error.
  virtual void Cancel() = 0;
};

// Makes a channel to a server with this many workers, at each call a new one.
using OpenWeightChannel =
    std::function<Result<std::unique_ptr<WeightChannel>>(int64_t num_workers)>;

}  // namespace pace

#endif  // PACE_ENGINES_WEIGHT_CHANNEL_H_
