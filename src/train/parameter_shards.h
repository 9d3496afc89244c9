// ParameterShards: the parameters of a network among ranks, each with a part of what is to be kept.
//
//   mode       weights                       gradients                    moments
//   none       whole                         whole, summed per update     whole
//   optimizer  whole                         whole, summed per update     1/N
//   gradients  whole                         1/N, summed in each pass     1/N
//   full       1/N, gathered layer by layer  1/N, summed in each pass     1/N
//
// A part is that of shard_layout.h. own() is what this rank's optimizer updates, under the
// parameters' names: the parameters themselves, or this rank's slices of them, flat, which share
// memory with the weights where those are whole. The gradients are sums over all ranks.
//
//   shards.BeginPass(); ... forward, backward ...; shards.EndPass();     // as often on every rank
//   PACE_RETURN_IF_ERROR(shards.SumGradients());
//   PACE_ASSIGN_OR_RETURN(const double norm, shards.NormOfGradients());
//   optimizer.Step(rate, GradientFactor(norm, 1.0));                         // over own()
//   PACE_RETURN_IF_ERROR(shards.ShareUpdate());
//
// Passes with GradMode on are those with a backward pass; where a pass stops early, or a rank has
// none, EndPass does the rank's part for the others. An error inside a pass is returned by the next
// call that returns one. One rank: nothing is shared, and nothing is done.
// Thread-safety: none.
#ifndef PACE_TRAIN_PARAMETER_SHARDS_H_
#define PACE_TRAIN_PARAMETER_SHARDS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/train_options.h"
#include "core/status.h"
#include "model/torch/layer_hooks.h"
#include "model/torch/training_network.h"
#include "ranks/communicator.h"
#include "train/adamw.h"
#include "train/shard_layout.h"

namespace pace {

class ParameterShards final : public LayerHooks {
 public:
  // Takes over the network's parameters and, where a mode needs it, its hooks. Both outlive it; it
  // does not move. `ranks` may be null: one rank.
  ParameterShards(TrainingNetwork& network, ShardMode mode, Communicator* ranks);
  ParameterShards(const ParameterShards&) = delete;
  ParameterShards& operator=(const ParameterShards&) = delete;

  int64_t rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }
  int64_t num_ranks() const { return ranks_ == nullptr ? 1 : ranks_->size(); }
  // Whether every rank must run as many passes as the others.
  bool counts_passes() const { return mode_ >= ShardMode::kGradients; }
  const NamedTensors& own() const { return own_; }
  const ShardLayout& layout() const { return layout_; }

  void BeginPass();
  void EndPass();
  // From now on passes add up the squares of their own gradients instead, and keep none.
  void Measure(bool measures) { measures_ = measures; }
  // The norm of the gradient that the pass under way has computed over `parameters`, a replica's,
  // which are left without.
  double TakeMeasured(const NamedTensors& parameters);

  void ZeroGradients();
  Status SumGradients();
  // The Euclidean norm of the whole gradient.
  Result<double> NormOfGradients();
  Status ShareUpdate();

  // Whole tensors made of every rank's `slices`, one after the other, to `take`: name and tensor in
  // the parameter's shape. Names are those of own() with `suffix`. Every rank calls it.
  using Take = std::function<void(const std::string& name, const at::Tensor& whole)>;
  Status Gather(const NamedTensors& slices, const std::string& suffix, const Take& take) const;
  // The rank's slice of a whole tensor of that parameter, in the shape of own(); undefined: none.
  at::Tensor SliceOf(const std::string& name, const at::Tensor& whole) const;
  // Writes the weights of this parameter. ShareUpdate is not needed where every rank does it.
  void SetWeight(const std::string& name, const at::Tensor& whole);

  void BeforeForward(int64_t layer) override;
  void AfterForward(int64_t layer) override;
  void BeforeBackward(int64_t layer) override;
  void AfterBackward(int64_t layer) override;

 private:
  bool sharded() const { return mode_ != ShardMode::kNone; }
  void Note(const Status& status);
  void TakeApart(size_t unit, const at::Tensor& flat);
  // Starts to gather, so that the next GatherWeights, of the same unit, waits less.
  void StartGather(size_t unit);
  void GatherAhead(size_t unit);
  void GatherWeights(size_t unit);
  void ReleaseWeights(size_t unit);
  // The local gradients of a unit, flat; they leave the parameters.
  at::Tensor TakeGradients(size_t unit);
  // Sums the unit's gradients, and ends the sum started before. The last needs EndSum.
  void StartSum(size_t unit);
  void EndSum();
  void MeasureUnit(size_t unit);
  void FinishUnit(size_t unit);
  // Which parameters have a gradient on any rank.
  Status ShareTouched();

  const ShardMode mode_;
  Communicator* const ranks_;
  bool overlaps_ = false;  // communication with computation: on CPUs
  const NamedTensors parameters_;
  const ShardLayout layout_;
  const std::vector<ShardSlice> slices_;  // of this rank
  const size_t root_;                     // the unit outside of layers
  std::vector<at::Tensor> flats_;         // whole weights by unit; undefined: not there
  std::vector<at::Tensor> parts_;         // of this rank
  std::vector<at::Tensor> gradients_;     // of this rank; undefined: zero
  NamedTensors own_;
  std::map<std::string, bool> touched_;  // has a gradient since ZeroGradients

  // Collectives that are pending while a layer is computed. Nullopt: none.
  struct Gathering {
    size_t unit = 0;
    at::Tensor flat = {};
    PendingCollective pending;
  };
  struct Summing {
    size_t unit = 0;
    at::Tensor flat = {};
    at::Tensor part = {};  // of `flat`
    PendingCollective pending;
  };
  std::optional<Gathering> gathering_ = {};
  std::optional<Summing> summing_ = {};

  bool measures_ = false;
  double measured_ = 0;
  bool backward_ = false;  // of the pass under way
  int64_t next_forward_ = 0;
  int64_t next_backward_ = 0;  // falling
  Status status_ = {};
};

}  // namespace pace

#endif  // PACE_TRAIN_PARAMETER_SHARDS_H_
