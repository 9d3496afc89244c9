#include "train/parameter_shards.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <map>
#include <utility>

#include "core/check.h"

namespace pace {
namespace {

std::map<std::string, std::vector<int64_t>> ShapesOf(const NamedTensors& parameters) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, parameter] : parameters) shapes.emplace(name, parameter.sizes().vec());
  return shapes;
}

at::Tensor ViewOf(const at::Tensor& flat, const ShardSlot& slot) {
  return flat.narrow(0, slot.offset, slot.count).view(slot.shape);
}

}  // namespace

ParameterShards::ParameterShards(TrainingNetwork& network, ShardMode mode, Communicator* ranks)
    : mode_(ranks == nullptr || ranks->size() == 1 ? ShardMode::kNone : mode),
      ranks_(ranks),
      parameters_(network.parameters()),
      layout_(LayOutShards(ShapesOf(parameters_), network.config().num_layers, num_ranks())),
      slices_(layout_.Slices(rank())),
      root_(layout_.units.size() - 1),
      flats_(layout_.units.size()),
      parts_(layout_.units.size()),
      gradients_(layout_.units.size()) {
  if (!sharded()) {
    own_ = parameters_;
    return;
  }
  overlaps_ = parameters_.begin()->second.is_cpu();
  const at::NoGradGuard no_grad;
  for (size_t u = 0; u < layout_.units.size(); ++u) {
    const ShardUnit& unit = layout_.units[u];
    const at::TensorOptions options = parameters_.begin()->second.options().requires_grad(false);
    const at::Tensor flat = at::zeros({unit.size}, options);
    for (const ShardSlot& slot : unit.slots) {
      ViewOf(flat, slot).copy_(parameters_.at(slot.name).detach());
    }
    parts_[u] = flat.narrow(0, rank() * unit.part_size, unit.part_size);
    if (mode_ == ShardMode::kFull) {
      parts_[u] = parts_[u].clone();
      ReleaseWeights(u);
    } else {
      TakeApart(u, flat);
    }
  }
  for (const ShardSlice& slice : slices_) {
    own_.emplace(layout_.units[slice.unit].slots[slice.slot].name,
                 parts_[slice.unit].narrow(0, slice.in_part, slice.count).detach());
  }
  if (counts_passes()) network.UseLayerHooks(this, /*weights_leave=*/mode_ == ShardMode::kFull);
}

void ParameterShards::Note(const Status& status) {
  if (status_.ok()) status_ = status;
}

// The parameters become views of `flat`, which is kept.
void ParameterShards::TakeApart(size_t unit, const at::Tensor& flat) {
  flats_[unit] = flat;
  for (const ShardSlot& slot : layout_.units[unit].slots) {
    at::Tensor(parameters_.at(slot.name)).set_data(ViewOf(flat, slot));
  }
}

void ParameterShards::StartGather(size_t unit) {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = at::empty({layout_.units[unit].size}, parts_[unit].options());
  gathering_ = {unit, flat, ranks_->StartAllGather(parts_[unit], flat)};
}

void ParameterShards::GatherAhead(size_t unit) {
  if (mode_ == ShardMode::kFull && overlaps_ && !flats_[unit].defined()) StartGather(unit);
}

void ParameterShards::GatherWeights(size_t unit) {
  if (mode_ != ShardMode::kFull || flats_[unit].defined()) return;
  const at::NoGradGuard no_grad;
  if (!gathering_.has_value()) StartGather(unit);
  PACE_CHECK(gathering_->unit == unit, "unit ", gathering_->unit, " instead of ", unit);
  const Status status = gathering_->pending.Finish();
  const at::Tensor flat = gathering_->flat;
  gathering_.reset();
  // The pass continues to its end; its results are discarded.
  if (!status.ok()) flat.zero_();
  Note(status);
  TakeApart(unit, flat);
}

void ParameterShards::ReleaseWeights(size_t unit) {
  if (mode_ != ShardMode::kFull) return;
  flats_[unit] = at::Tensor();
  for (const ShardSlot& slot : layout_.units[unit].slots) {
    at::Tensor parameter = parameters_.at(slot.name);
    parameter.set_data(at::empty({0}, parameter.options().requires_grad(false)));
  }
}

at::Tensor ParameterShards::TakeGradients(size_t unit) {
  const ShardUnit& of_unit = layout_.units[unit];
  const at::Tensor flat =
      at::empty({of_unit.size}, parameters_.begin()->second.options().requires_grad(false));
  int64_t written = 0;
  for (const ShardSlot& slot : of_unit.slots) {
    at::Tensor parameter = parameters_.at(slot.name);
    if (!parameter.grad().defined()) continue;
    touched_[slot.name] = true;
    flat.narrow(0, written, slot.offset - written).zero_();
    ViewOf(flat, slot).copy_(parameter.grad());
    written = slot.offset + slot.count;
    parameter.mutable_grad() = at::Tensor();
  }
  flat.narrow(0, written, of_unit.size - written).zero_();
  return flat;
}

void ParameterShards::StartSum(size_t unit) {
  EndSum();
  const at::NoGradGuard no_grad;
  const at::Tensor flat = TakeGradients(unit);
  const int64_t part_size = layout_.units[unit].part_size;
  const at::Tensor part = flat.narrow(0, rank() * part_size, part_size);
  summing_ = {unit, flat, part, ranks_->StartReduceScatter(flat, part)};
  if (!overlaps_) EndSum();
}

void ParameterShards::EndSum() {
  if (!summing_.has_value()) return;
  const at::NoGradGuard no_grad;
  Note(summing_->pending.Finish());
  at::Tensor& gradient = gradients_[summing_->unit];
  if (gradient.defined()) {
    gradient.add_(summing_->part);
  } else {
    gradient = summing_->part.clone();
  }
  summing_.reset();
}

void ParameterShards::MeasureUnit(size_t unit) {
  NamedTensors of_unit;
  for (const ShardSlot& slot : layout_.units[unit].slots) {
    of_unit.emplace(slot.name, parameters_.at(slot.name));
  }
  const double norm = GradientNorm(of_unit);
  measured_ += norm * norm;
  FreeGradients(of_unit);
}

void ParameterShards::FinishUnit(size_t unit) {
  if (measures_) {
    MeasureUnit(unit);
  } else {
    StartSum(unit);
  }
  ReleaseWeights(unit);
}

void ParameterShards::BeforeForward(int64_t layer) {
  PACE_CHECK(layer == next_forward_, "layer ", layer, " instead of ", next_forward_);
  const auto unit = static_cast<size_t>(layer);
  GatherWeights(unit);
  if (unit + 1 < root_) GatherAhead(unit + 1);
}

void ParameterShards::AfterForward(int64_t layer) {
  next_forward_ = layer + 1;
  // The backward pass begins with the last layer.
  const bool stays = backward_ && static_cast<size_t>(next_forward_) == root_;
  if (!stays) ReleaseWeights(static_cast<size_t>(layer));
}

void ParameterShards::BeforeBackward(int64_t layer) {
  PACE_CHECK(layer == next_backward_, "layer ", layer, " instead of ", next_backward_);
  const auto unit = static_cast<size_t>(layer);
  GatherWeights(unit);
  if (unit > 0) GatherAhead(unit - 1);
}

void ParameterShards::AfterBackward(int64_t layer) {
  FinishUnit(static_cast<size_t>(layer));
  next_backward_ = layer - 1;
}

void ParameterShards::BeginPass() {
  if (!counts_passes()) return;
  // What a pass that an exception ended has left.
  gathering_.reset();
  summing_.reset();
  backward_ = at::GradMode::is_enabled();
  next_forward_ = 0;
  next_backward_ = static_cast<int64_t>(root_) - 1;
  GatherWeights(root_);
}

void ParameterShards::EndPass() {
  if (!counts_passes()) return;
  const auto num_layers = static_cast<int64_t>(root_);
  while (next_forward_ < num_layers) {
    const int64_t layer = next_forward_;
    BeforeForward(layer);
    AfterForward(layer);
  }
  while (backward_ && next_backward_ >= 0) {
    const int64_t layer = next_backward_;
    BeforeBackward(layer);
    AfterBackward(layer);
  }
  if (!backward_) {
    ReleaseWeights(root_);
    return;
  }
  FinishUnit(root_);
  EndSum();
  for (const auto& [name, parameter] : parameters_) {
    PACE_CHECK(!parameter.grad().defined(), name, " got its gradient after it was summed");
  }
}

double ParameterShards::TakeMeasured(const NamedTensors& parameters) {
  // Layers are freed as they come; what is outside of them is still there.
  const double rest = GradientNorm(parameters);
  FreeGradients(parameters);
  if (!counts_passes()) return rest;
  return std::sqrt(std::exchange(measured_, 0) + rest * rest);
}

void ParameterShards::ZeroGradients() {
  touched_.clear();
  for (at::Tensor& gradient : gradients_) gradient = at::Tensor();
  FreeGradients(own_);
  FreeGradients(parameters_);
}

Status ParameterShards::ShareTouched() {
  const at::Tensor counts = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kLong);
  auto* const data = counts.data_ptr<int64_t>();
  int64_t index = 0;
  for (const auto& [name, parameter] : parameters_) {
    data[index++] = touched_[name] || parameter.grad().defined() ? 1 : 0;
  }
  PACE_RETURN_IF_ERROR(ranks_->AllReduce(counts));
  index = 0;
  for (const auto& [name, parameter] : parameters_) touched_[name] = data[index++] > 0;
  return Status::Ok();
}

Status ParameterShards::SumGradients() {
  PACE_RETURN_IF_ERROR(status_);
  if (num_ranks() == 1) return Status::Ok();
  const at::NoGradGuard no_grad;
  PACE_RETURN_IF_ERROR(ShareTouched());
  for (size_t u = 0; u < layout_.units.size(); ++u) {
    if (counts_passes()) continue;
    if (sharded()) {
      StartSum(u);
      PACE_RETURN_IF_ERROR(status_);
      continue;
    }
    const at::Tensor flat = TakeGradients(u);
    PACE_RETURN_IF_ERROR(ranks_->AllReduce(flat));
    for (const ShardSlot& slot : layout_.units[u].slots) {
      if (!touched_[slot.name]) continue;
      at::Tensor(parameters_.at(slot.name)).mutable_grad() = ViewOf(flat, slot);
    }
  }
  if (!sharded()) return Status::Ok();
  EndSum();
  PACE_RETURN_IF_ERROR(status_);
  for (const ShardSlice& slice : slices_) {
    const std::string& name = layout_.units[slice.unit].slots[slice.slot].name;
    if (!touched_[name] || !gradients_[slice.unit].defined()) continue;
    own_.at(name).mutable_grad() = gradients_[slice.unit].narrow(0, slice.in_part, slice.count);
  }
  return Status::Ok();
}

Result<double> ParameterShards::NormOfGradients() {
  const double norm = GradientNorm(own_);
  if (!sharded()) return norm;
  const at::Tensor square = at::full({1}, norm * norm, at::kDouble);
  PACE_RETURN_IF_ERROR(ranks_->AllReduce(square));
  return std::sqrt(square.item<double>());
}

Status ParameterShards::ShareUpdate() {
  if (!sharded() || mode_ == ShardMode::kFull) return Status::Ok();
  std::vector<PendingCollective> gathers;
  for (size_t u = 0; u < layout_.units.size(); ++u) {
    gathers.push_back(ranks_->StartAllGather(parts_[u], flats_[u]));
  }
  for (PendingCollective& gather : gathers) PACE_RETURN_IF_ERROR(gather.Finish());
  return Status::Ok();
}

Status ParameterShards::Gather(const NamedTensors& slices, const std::string& suffix,
                               const Take& take) const {
  const at::NoGradGuard no_grad;
  if (!sharded()) {
    for (const auto& [name, parameter] : parameters_) take(name, slices.at(name + suffix).detach());
    return Status::Ok();
  }
  for (size_t u = 0; u < layout_.units.size(); ++u) {
    const ShardUnit& unit = layout_.units[u];
    const at::Tensor part = at::zeros({unit.part_size}, parts_[u].options());
    for (const ShardSlice& slice : slices_) {
      if (slice.unit != u) continue;
      part.narrow(0, slice.in_part, slice.count)
          .copy_(slices.at(unit.slots[slice.slot].name + suffix).detach());
    }
    const at::Tensor flat = at::empty({unit.size}, part.options());
    PACE_RETURN_IF_ERROR(ranks_->AllGather(part, flat));
    for (const ShardSlot& slot : unit.slots) take(slot.name, ViewOf(flat, slot));
  }
  return Status::Ok();
}

at::Tensor ParameterShards::SliceOf(const std::string& name, const at::Tensor& whole) const {
  if (!sharded()) return whole;
  for (const ShardSlice& slice : slices_) {
    if (layout_.units[slice.unit].slots[slice.slot].name != name) continue;
    return whole.reshape(-1).narrow(0, slice.in_parameter, slice.count);
  }
  return {};
}

void ParameterShards::SetWeight(const std::string& name, const at::Tensor& whole) {
  const at::NoGradGuard no_grad;
  if (mode_ != ShardMode::kFull) {
    const at::Tensor parameter = parameters_.at(name).detach();
    parameter.copy_(whole.view(parameter.sizes()));
    return;
  }
  const at::Tensor slice = SliceOf(name, whole);
  if (slice.defined()) own_.at(name).detach().copy_(slice);
}

}  // namespace pace
