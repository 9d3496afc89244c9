// NetworkReplicas: a network and its replicas, one per thread, that share the passes
// over a batch.
//
//   replicas.ForBins<T>(batch, token_budget, [&](const NetworkReplicas::Bin& bin) { ... return T;
//   });
//
// Sequences are shared among the threads by length and packed into bins of at
// most token_budget tokens; a thread takes its bins one after the other. Who takes
// what, and the order of the results, are functions of the lengths alone. Where several ranks
// train, the sequences are shared among the ranks in the same way first, and this one's threads
// see its share.
// Thread-safety: none; ForBins starts threads of its own and ends them.
#ifndef PACE_TRAIN_NETWORK_REPLICAS_H_
#define PACE_TRAIN_NETWORK_REPLICAS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "model/torch/training_network.h"
#include "train/minibatch.h"
#include "train/parameter_shards.h"

namespace pace {

class NetworkReplicas {
 public:
  // `shards`: of the ranks; null: one rank. `passes`: their parameters are this network's, whose
  // passes they are told of.
  NetworkReplicas(TrainingNetwork network, int64_t num_threads, ParameterShards* shards,
                  bool passes);

  const TrainingNetwork& network() const { return members_.front(); }
  int64_t num_threads() const { return static_cast<int64_t>(members_.size()); }

  struct Bin {
    size_t thread = 0;
    const TrainingNetwork& network;  // that thread's
    std::vector<size_t> sequences;   // of the batch, rising
  };

  // `body` runs on several threads, under the caller's grad mode. An exception of
  // any comes out of the call.
  template <typename T, typename Body>
  std::vector<T> ForBins(const Minibatch& batch, int64_t token_budget, const Body& body) const {
    std::vector<std::vector<T>> results(members_.size());
    RunBins(batch, token_budget, [&](const Bin& bin) { results[bin.thread].push_back(body(bin)); });
    std::vector<T> all;
    for (std::vector<T>& own : results) {
      std::move(own.begin(), own.end(), std::back_inserter(all));
    }
    return all;
  }
  void RunBins(const Minibatch& batch, int64_t token_budget,
               const std::function<void(const Bin&)>& body) const;

  // The replicas' gradients, added to the network's in their order.
  void GatherGradients() const;
  void ZeroGradients() const;

 private:
  // The sequences of each rank, and how many bins a thread of this one must run.
  std::vector<size_t> OwnSequences(std::span<const int64_t> lengths) const;
  size_t NumPasses(std::span<const int64_t> lengths, int64_t token_budget) const;

  std::vector<TrainingNetwork> members_;  // the network, then its replicas
  ParameterShards* shards_;
  bool passes_;
};

}  // namespace pace

#endif  // PACE_TRAIN_NETWORK_REPLICAS_H_
