#include "model/weight_set.h"

#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/printable.h"
#include "formats/checkpoint.h"
#include "formats/half.h"
#include "model/stacked_experts.h"

namespace pace {
namespace {

bool IsFloat(Dtype dtype) {
  return dtype == Dtype::kF32 || dtype == Dtype::kF16 || dtype == Dtype::kBF16;
}

// Tables that old checkpoints carry and that are computed from the config.
bool IsRotaryTable(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq");
}

// All that is wrong, told as one line: the first defect and how many follow.
class Defects {
 public:
  void Add(std::string line) {
    if (first_.empty()) first_ = std::move(line);
    ++count_;
  }
  Status ToStatus() const {
    if (count_ == 0) return Status::Ok();
    if (count_ == 1) return InvalidArgument(first_);
    return InvalidArgument(first_, " (and ", count_ - 1, " more tensors are wrong)");
  }

 private:
  std::string first_;
  int64_t count_ = 0;
};

void CheckOne(const Parameter& parameter, const TensorView& view, Defects& defects) {
  if (view.shape != parameter.shape) {
    defects.Add(Concat(parameter.name, ": shape is ", ShapeText(view.shape), ": must be ",
                       ShapeText(parameter.shape), " by the config"));
  } else if (!IsFloat(view.dtype)) {
    defects.Add(Concat(parameter.name, ": dtype is ", DtypeName(view.dtype),
                       ": must be F32, F16 or BF16 (quantised weights are not supported)"));
  } else {
    const Result<int64_t> bytes = TensorBytes(view.dtype, view.shape);
    PACE_CHECK(bytes.ok() && std::cmp_equal(*bytes, view.bytes.size()), parameter.name, ": holds ",
               view.bytes.size(), " bytes");
  }
}

}  // namespace

Result<WeightSet> WeightSet::Create(const ModelConfig& config, TensorViews views,
                                    std::shared_ptr<const void> owner, Residence residence) {
  PACE_RETURN_IF_ERROR(SplitStackedExperts(config, views));
  WeightSet set;
  set.owner_ = std::move(owner);
  set.residence_ = residence;
  Defects defects;
  for (const Parameter& parameter : ParametersOf(config)) {
    const auto found = views.find(parameter.name);
    if (found == views.end()) {
      defects.Add(Concat(parameter.name, ": is missing: must be there with shape ",
                         ShapeText(parameter.shape)));
      continue;
    }
    CheckOne(parameter, found->second, defects);
    set.views_.insert(views.extract(found));
  }
  for (const auto& [name, view] : views) {
    if (config.tied && name == "lm_head.weight") continue;
    if (IsRotaryTable(name)) continue;
    defects.Add(Concat(Printable(name), ": is not a parameter of this ",
                       ArchitectureName(config.architecture), " config"));
  }
  PACE_RETURN_IF_ERROR(defects.ToStatus());
  return set;
}

Result<WeightSet> WeightSet::Load(const ModelConfig& config, const std::string& folder) {
  PACE_ASSIGN_OR_RETURN(SafetensorsCheckpoint checkpoint,
                        SafetensorsCheckpoint::OpenFolder(folder));
  auto owner = std::make_shared<const SafetensorsCheckpoint>(std::move(checkpoint));
  Result<WeightSet> set = Create(config, owner->tensors(), owner);
  if (!set.ok()) return set.status().At(folder);
  return set;
}

const TensorView& WeightSet::Get(std::string_view name) const {
  const auto found = views_.find(name);
  PACE_CHECK(found != views_.end(), name, ": is not a parameter of this set");
  return found->second;
}

std::vector<float> WeightSet::Floats(std::string_view name) const {
  PACE_CHECK(residence_ == Residence::kHost, name, ": lies on a GPU");
  const TensorView& view = Get(name);
  const auto bits = static_cast<size_t>(BitsPerElement(view.dtype));
  std::vector<float> out(view.bytes.size() * 8 / bits);
  ReadFloats(view, out);
  return out;
}

void ReadFloats(const TensorView& tensor, std::span<float> out) {
  if (tensor.dtype == Dtype::kF32) {
    PACE_CHECK(out.size_bytes() == tensor.bytes.size(), "sizes differ");
    if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), out.size_bytes());
    return;
  }
  PACE_CHECK(tensor.dtype == Dtype::kF16 || tensor.dtype == Dtype::kBF16, DtypeName(tensor.dtype),
             " does not hold floats");
  PACE_CHECK(out.size() * 2 == tensor.bytes.size(), "sizes differ");
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, tensor.bytes.data() + 2 * i, sizeof(half));
    out[i] = tensor.dtype == Dtype::kF16 ? F16ToFloat(half) : BF16ToFloat(half);
  }
}

}  // namespace pace
