#include "train/network_replicas.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>

#include "train/adamw.h"
#include "train/minibatch.h"

namespace pace {

NetworkReplicas::NetworkReplicas(TrainingNetwork network, int64_t num_threads,
                                 ParameterShards* shards, bool passes)
    : shards_(shards), passes_(passes && shards != nullptr && shards->counts_passes()) {
  members_.push_back(std::move(network));
  for (int64_t i = 1; i < num_threads; ++i) members_.push_back(members_.front().Replica());
}

std::vector<size_t> NetworkReplicas::OwnSequences(std::span<const int64_t> lengths) const {
  if (shards_ == nullptr || shards_->num_ranks() == 1) {
    std::vector<size_t> all(lengths.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return all;
  }
  std::vector<std::vector<size_t>> shares = ShareSequences(lengths, shards_->num_ranks());
  const auto rank = static_cast<size_t>(shards_->rank());
  return rank < shares.size() ? std::move(shares[rank]) : std::vector<size_t>();
}

size_t NetworkReplicas::NumPasses(std::span<const int64_t> lengths, int64_t token_budget) const {
  size_t most = 0;
  for (const std::vector<size_t>& share : ShareSequences(lengths, shards_->num_ranks())) {
    std::vector<int64_t> own;
    for (const size_t sequence : share) own.push_back(lengths[sequence]);
    most = std::max(most, PackSequences(own, token_budget).size());
  }
  return most;
}

void NetworkReplicas::RunBins(const Minibatch& batch, int64_t token_budget,
                              const std::function<void(const Bin&)>& body) const {
  const std::vector<int64_t> lengths = batch.ForwardLengths();
  const std::vector<size_t> sequences = OwnSequences(lengths);
  std::vector<int64_t> own_lengths;
  for (const size_t sequence : sequences) own_lengths.push_back(lengths[sequence]);
  std::vector<std::vector<size_t>> shares = ShareSequences(own_lengths, num_threads());
  for (std::vector<size_t>& share : shares) {
    for (size_t& index : share) index = sequences[index];
  }
  size_t num_idle = passes_ ? NumPasses(lengths, token_budget) : 0;
  std::vector<std::exception_ptr> errors(shares.size());
  const auto run = [&](size_t thread) {
    try {
      std::vector<int64_t> own;
      for (const size_t sequence : shares[thread]) own.push_back(lengths[sequence]);
      std::vector<std::vector<size_t>> bins =
          passes_ ? PackEvenly(own, token_budget, static_cast<int64_t>(num_idle))
                  : PackSequences(own, token_budget);
      for (std::vector<size_t>& bin : bins) {
        for (size_t& index : bin) index = shares[thread][index];
        if (passes_) shards_->BeginPass();
        body({.thread = thread, .network = members_[thread], .sequences = std::move(bin)});
        if (passes_) shards_->EndPass();
        if (num_idle > 0) --num_idle;
      }
      // The other ranks have more of them.
      for (; num_idle > 0; --num_idle) {
        shards_->BeginPass();
        shards_->EndPass();
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
