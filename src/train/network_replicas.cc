#include "train/network_replicas.h"

#include <ATen/Parallel.h>

#include <exception>
#include <thread>

#include "train/adamw.h"
#include "train/minibatch.h"

namespace pace {

NetworkReplicas::NetworkReplicas(TrainingNetwork network, int64_t num_threads) {
  members_.push_back(std::move(network));
  for (int64_t i = 1; i < num_threads; ++i) members_.push_back(members_.front().Replica());
}

void NetworkReplicas::RunBins(const Minibatch& batch, int64_t token_budget,
                              const std::function<void(const Bin&)>& body) const {
  const std::vector<int64_t> lengths = batch.ForwardLengths();
  const std::vector<std::vector<size_t>> shares = ShareSequences(lengths, num_threads());
  std::vector<std::exception_ptr> errors(shares.size());
  const auto run = [&](size_t thread) {
    try {
      std::vector<int64_t> own;
      for (const size_t sequence : shares[thread]) own.push_back(lengths[sequence]);
      for (std::vector<size_t>& bin : PackSequences(own, token_budget)) {
        for (size_t& index : bin) index = shares[thread][index];
        body({.thread = thread, .network = members_[thread], .sequences = std::move(bin)});
      }
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (size_t thread = 1; thread < shares.size(); ++thread) {
    threads.emplace_back([&run, thread, grad = at::GradMode::is_enabled()] {
      const at::AutoGradMode mode(grad);
      at::set_num_threads(1);
      run(thread);
    });
  }
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void NetworkReplicas::GatherGradients() const {
  for (size_t i = 1; i < members_.size(); ++i) {
    AddGradients(members_[i].parameters(), network().parameters());
  }
}

void NetworkReplicas::ZeroGradients() const {
  for (const TrainingNetwork& member : members_) FreeGradients(member.parameters());
}

}  // namespace pace
