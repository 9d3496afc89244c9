// A plain training loop of `transformers` as the peer of the trainer benchmark,
// in a process of its own that loads the weights once.
#ifndef PACE_BENCH_TRAIN_PEER_H_
#define PACE_BENCH_TRAIN_PEER_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/peer_process.h"
#include "bench/train_loop.h"
#include "core/status.h"
#include "train/minibatch.h"
#include "train/trainer.h"

namespace pace {

// How the peer takes sequences into padded micro-batches: as they came, by
// length, or one by one.
enum class PeerOrder { kPlain, kSorted, kSingle };
inline constexpr std::array kPeerOrders = {PeerOrder::kPlain, PeerOrder::kSorted,
                                           PeerOrder::kSingle};
std::string_view NameOf(PeerOrder order);

class TrainPeer {
 public:
  // float32, with the settings of `options`; each order has weights of its own,
  // from the same folder. `token_budget` is that of all threads together.
  static Result<std::unique_ptr<TrainPeer>> Start(const std::string& folder,
                                                  const std::vector<TrainSequence>& sequences,
                                                  const TrainerOptions& options,
                                                  int64_t token_budget);

  Result<TrainStep> Step(PeerOrder order, bool measure_memory);

  const std::string& version() const { return version_; }
  // Of its tokens, how many are padding.
  double padding_share(PeerOrder order) const { return padding_.at(order); }

 private:
  explicit TrainPeer(PeerProcess process) : process_(std::move(process)) {}
  Status ReadLoaded();

  PeerProcess process_;
  std::string version_;
  std::map<PeerOrder, double> padding_;
};

}  // namespace pace

#endif  // PACE_BENCH_TRAIN_PEER_H_
