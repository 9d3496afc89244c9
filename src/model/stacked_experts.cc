#include "model/stacked_experts.h"

#include <string>
#include <utility>
#include <vector>

#include "core/concat.h"

namespace pace {
namespace {

// Cuts a stack into equal parts along its rows: those of expert 0 first, and of
// each expert the projections in the order of their names.
Status Split(TensorViews& views, const std::string& experts, const std::string& stack,
             const std::vector<std::string>& projections, std::vector<int64_t> shape) {
  const auto found = views.find(experts + stack);
  if (found == views.end()) return Status::Ok();
  const TensorView whole = std::move(found->second);
  views.erase(found);
  if (whole.shape != shape) {
    return InvalidArgument(experts, stack, ": shape is ", ShapeText(whole.shape), ": must be ",
                           ShapeText(shape), " by the config");
  }
  const int64_t num_experts = shape[0];
  const auto num_parts = static_cast<size_t>(num_experts) * projections.size();
  const size_t part_bytes = whole.bytes.size() / num_parts;
  const std::vector<int64_t> part_shape = {shape[1] / static_cast<int64_t>(projections.size()),
                                           shape[2]};
  size_t begin = 0;
  for (int64_t expert = 0; expert < num_experts; ++expert) {
    for (const std::string& projection : projections) {
      const std::string name = Concat(experts, expert, ".", projection, ".weight");
      const TensorView part{.dtype = whole.dtype,
                            .shape = part_shape,
                            .bytes = whole.bytes.subspan(begin, part_bytes)};
      if (!views.emplace(name, part).second) {
        return InvalidArgument(name, ": is also part of ", experts, stack, ": must be in one");
      }
      begin += part_bytes;
    }
  }
  return Status::Ok();
}

}  // namespace

Status SplitStackedExperts(const ModelConfig& config, TensorViews& views) {
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    if (!config.IsSparse(layer)) continue;
    const MoeConfig& moe = *config.moe;
    const std::string experts = Concat("model.layers.", layer, ".mlp.experts.");
    PACE_RETURN_IF_ERROR(Split(views, experts, "gate_up_proj", {"gate_proj", "up_proj"},
                               {moe.num_experts, 2 * moe.intermediate_size, config.hidden_size}));
    PACE_RETURN_IF_ERROR(Split(views, experts, "down_proj", {"down_proj"},
                               {moe.num_experts, config.hidden_size, moe.intermediate_size}));
  }
  return Status::Ok();
}

}  // namespace pace
