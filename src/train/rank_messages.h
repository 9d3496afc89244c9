// What the trainers of several ranks tell each other, as bytes (ranks/byte_message.h).
//
//   Result<std::vector<TrainSequence>> read = DecodeSequences(EncodeSequences(sequences));
//
// Bytes that are cut off are an error. Thread-safety: plain data, pure functions.
#ifndef PACE_TRAIN_RANK_MESSAGES_H_
#define PACE_TRAIN_RANK_MESSAGES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "train/math/metric.h"
#include "train/minibatch.h"

namespace pace {

std::string EncodeSequences(std::span<const TrainSequence> sequences);
Result<std::vector<TrainSequence>> DecodeSequences(std::string_view bytes);

// What an update adds up over its micro-batches.
struct UpdateSums {
  Status status = {};
  double loss = 0;
  MetricList metrics = {};

  void Add(const UpdateSums& part);
};
std::string EncodeSums(const UpdateSums& sums);
Result<UpdateSums> DecodeSums(std::string_view bytes);

// What rank 0 says before it sends the tensors of a state.
struct RestoreHeader {
  Status status = {};  // an error: no tensors follow
  int64_t num_updates = 0;
  double kl_coefficient = 0;
};
std::string EncodeHeader(const RestoreHeader& header);
Result<RestoreHeader> DecodeHeader(std::string_view bytes);

}  // namespace pace

#endif  // PACE_TRAIN_RANK_MESSAGES_H_
