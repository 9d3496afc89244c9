#include "model/weight_set.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <list>
#include <utility>

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/concat.h"
#include "core/printable.h"
#include "core/random.h"
#include "formats/checkpoint.h"
#include "formats/float_encoding.h"
#include "formats/safetensors_writer.h"
#include "model/model_config_json.h"

namespace pace {
namespace {

class ParameterList {
 public:
  explicit ParameterList(const ModelConfig& config) : config_(config) {}

  std::vector<Parameter> All() {
    const ModelConfig& c = config_;
    Add("model.embed_tokens.weight", {c.vocab_size, c.hidden_size});
    for (int64_t layer = 0; layer < c.num_layers; ++layer) AddLayer(layer);
    Add("model.norm.weight", {c.hidden_size});
    if (!c.tied) Add("lm_head.weight", {c.vocab_size, c.hidden_size});
    return std::move(list_);
  }

 private:
  void Add(std::string name, std::vector<int64_t> shape) {
    list_.push_back({.name = std::move(name), .shape = std::move(shape)});
  }

  void AddLinear(const std::string& name, int64_t rows, int64_t columns, bool bias) {
    Add(name + ".weight", {rows, columns});
    if (bias) Add(name + ".bias", {rows});
  }

  void AddMlp(const std::string& at, int64_t size, bool bias) {
    AddLinear(at + "gate_proj", size, config_.hidden_size, bias);
    AddLinear(at + "up_proj", size, config_.hidden_size, bias);
    AddLinear(at + "down_proj", config_.hidden_size, size, bias);
  }

  void AddLayer(int64_t index) {
    const ModelConfig& c = config_;
    const std::string layer = Concat("model.layers.", index, ".");
    const std::string attention = layer + "self_attn.";
    Add(layer + "input_layernorm.weight", {c.hidden_size});
    AddLinear(attention + "q_proj", c.query_size(), c.hidden_size, c.qkv_bias);
    AddLinear(attention + "k_proj", c.kv_size(), c.hidden_size, c.qkv_bias);
    AddLinear(attention + "v_proj", c.kv_size(), c.hidden_size, c.qkv_bias);
    if (c.qk_norm) {
      Add(attention + "q_norm.weight", {c.head_dim});
      Add(attention + "k_norm.weight", {c.head_dim});
    }
    AddLinear(attention + "o_proj", c.hidden_size, c.query_size(), c.output_bias);
    Add(layer + "post_attention_layernorm.weight", {c.hidden_size});
    if (!c.IsSparse(index)) return AddMlp(layer + "mlp.", c.intermediate_size, c.mlp_bias);
    Add(layer + "mlp.gate.weight", {c.moe->num_experts, c.hidden_size});
    for (int64_t expert = 0; expert < c.moe->num_experts; ++expert) {
      AddMlp(Concat(layer, "mlp.experts.", expert, "."), c.moe->intermediate_size, false);
    }
  }

  const ModelConfig& config_;
  std::vector<Parameter> list_;
};

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

// Cuts a stack into equal parts along its rows: those of expert 0 first, and of
// each expert the projections in the order of their names.
Status SplitStack(TensorViews& views, const std::string& experts, const std::string& stack,
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

// Replaces experts that are stacked into one tensor per projection, as transformers 5 keeps
// them in memory and writes them on request, by views of one expert and projection each:
//
//   model.layers.N.mlp.experts.gate_up_proj  [num_experts, 2 * size, hidden]
//   model.layers.N.mlp.experts.down_proj     [num_experts, hidden, size]
Status SplitStackedExperts(const ModelConfig& config, TensorViews& views) {
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    if (!config.IsSparse(layer)) continue;
    const MoeConfig& moe = *config.moe;
    const std::string experts = Concat("model.layers.", layer, ".mlp.experts.");
    PACE_RETURN_IF_ERROR(
        SplitStack(views, experts, "gate_up_proj", {"gate_proj", "up_proj"},
                   {moe.num_experts, 2 * moe.intermediate_size, config.hidden_size}));
    PACE_RETURN_IF_ERROR(SplitStack(views, experts, "down_proj", {"down_proj"},
                                    {moe.num_experts, config.hidden_size, moe.intermediate_size}));
  }
  return Status::Ok();
}

// Elements whose exponent is all ones: NaN or infinity.
template <typename Bits>
int64_t CountNotFinite(std::span<const std::byte> bytes, Bits exponent) {
  std::array<Bits, 4096> chunk;
  int64_t count = 0;
  const size_t num_elements = bytes.size() / sizeof(Bits);
  for (size_t begin = 0; begin < num_elements; begin += chunk.size()) {
    const size_t size = std::min(chunk.size(), num_elements - begin);
    std::memcpy(chunk.data(), bytes.data() + begin * sizeof(Bits), size * sizeof(Bits));
    uint32_t found = 0;
    for (size_t i = 0; i < size; ++i) found += (chunk[i] & exponent) == exponent ? 1 : 0;
    count += found;
  }
  return count;
}

int64_t CountNotFinite(const TensorView& tensor) {
  switch (tensor.dtype) {
    case Dtype::kF32:
      return CountNotFinite<uint32_t>(tensor.bytes, 0x7F800000);
    case Dtype::kF16:
      return CountNotFinite<uint16_t>(tensor.bytes, 0x7C00);
    case Dtype::kBF16:
      return CountNotFinite<uint16_t>(tensor.bytes, 0x7F80);
    default:
      return 0;
  }
}

std::vector<std::byte> Converted(const TensorView& tensor, Dtype dtype) {
  const auto bits = static_cast<size_t>(BitsPerElement(tensor.dtype));
  std::vector<float> floats(tensor.bytes.size() * 8 / bits);
  ReadFloats(tensor, floats);
  std::vector<std::byte> bytes;
  if (dtype == Dtype::kF32) {
    bytes.resize(floats.size() * sizeof(float));
    if (!floats.empty()) std::memcpy(bytes.data(), floats.data(), bytes.size());
    return bytes;
  }
  bytes.resize(floats.size() * sizeof(uint16_t));
  for (size_t i = 0; i < floats.size(); ++i) {
    const uint16_t half = dtype == Dtype::kF16 ? FloatToF16(floats[i]) : FloatToBF16(floats[i]);
    std::memcpy(bytes.data() + i * sizeof(half), &half, sizeof(half));
  }
  return bytes;
}

}  // namespace

std::vector<Parameter> ParametersOf(const ModelConfig& config) {
  return ParameterList(config).All();
}

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

Status CheckFinite(const WeightSet& weights) {
  PACE_CHECK(weights.residence() == Residence::kHost, "weights on a device");
  for (const auto& [name, tensor] : weights.views()) {
    const int64_t count = CountNotFinite(tensor);
    if (count == 0) continue;
    const auto width = static_cast<int64_t>(tensor.dtype == Dtype::kF32 ? 4 : 2);
    return InvalidArgument(name, ": ", count, " of ",
                           static_cast<int64_t>(tensor.bytes.size()) / width,
                           " elements are NaN or infinite (the file is damaged, or the training "
                           "that wrote it diverged)");
  }
  return Status::Ok();
}

WeightSet InDtype(const ModelConfig& config, const WeightSet& weights, Dtype dtype) {
  struct Owner {
    WeightSet shared;
    std::list<std::vector<std::byte>> converted;
  };
  const auto owner = std::make_shared<Owner>(Owner{.shared = weights, .converted = {}});
  TensorViews views;
  for (const Parameter& parameter : ParametersOf(config)) {
    TensorView view = weights.Get(parameter.name);
    if (view.dtype != dtype) {
      view.bytes = owner->converted.emplace_back(Converted(view, dtype));
      view.dtype = dtype;
    }
    views.emplace(parameter.name, std::move(view));
  }
  Result<WeightSet> set = WeightSet::Create(config, std::move(views), owner);
  PACE_CHECK(set.ok(), set.status().message());
  return std::move(*set);
}

Status SaveModel(const std::string& folder, const ModelConfig& config, const WeightSet& weights,
                 Dtype dtype, int64_t max_shard_bytes, TiedHead head) {
  if (dtype != Dtype::kF32 && dtype != Dtype::kF16 && dtype != Dtype::kBF16) {
    return InvalidArgument("dtype = ", DtypeName(dtype), ": must be F32, F16 or BF16");
  }
  if (max_shard_bytes <= 0) {
    return InvalidArgument("max_shard_bytes = ", max_shard_bytes, ": must be > 0");
  }
  PACE_RETURN_IF_ERROR(CreateFolders(folder));

  const WeightSet stored_weights = InDtype(config, weights, dtype);
  TensorViews views = stored_weights.views();
  if (config.tied && head == TiedHead::kWrite) {
    views.emplace("lm_head.weight", views.at("model.embed_tokens.weight"));
  }
  // The config comes last: a folder that has one is whole.
  PACE_RETURN_IF_ERROR(WriteShardedSafetensors(folder, views, kPyTorchMetadata, max_shard_bytes));
  ModelConfig stored = config;
  stored.dtype = dtype;
  const std::filesystem::path path = folder;
  PACE_RETURN_IF_ERROR(WriteFileAtomically((path / "generation_config.json").string(),
                                           GenerationConfigJson(stored)));
  return WriteFileAtomically((path / "config.json").string(), ModelConfigJson(stored));
}

WeightSet RandomWeights(const ModelConfig& config, uint64_t seed, double scale) {
  constexpr uint32_t kStream = 0x77656967;
  constexpr double kNormDeviation = 0.1;
  const CounterRandom random(seed, kStream);
  const auto values =
      std::make_shared<std::vector<float>>(static_cast<size_t>(config.num_parameters()));
  TensorViews views;
  size_t begin = 0;
  uint64_t stream = 0;
  for (Parameter& parameter : ParametersOf(config)) {
    size_t count = 1;
    for (const int64_t size : parameter.shape) count *= static_cast<size_t>(size);
    const bool norm = parameter.name.ends_with("norm.weight");
    const std::span<float> out = std::span(*values).subspan(begin, count);
    for (size_t i = 0; i < count; ++i) {
      const double normal = random.RoughNormal(stream + (i >> 32), i & 0xffffffff);
      out[i] = static_cast<float>(norm ? 1 + kNormDeviation * normal : scale * normal);
    }
    views.emplace(std::move(parameter.name), TensorView{.dtype = Dtype::kF32,
                                                        .shape = std::move(parameter.shape),
                                                        .bytes = std::as_bytes(out)});
    begin += count;
    stream += (count >> 32) + 1;
  }
  Result<WeightSet> set = WeightSet::Create(config, std::move(views), values);
  PACE_CHECK(set.ok(), set.status().message());
  return std::move(*set);
}

}  // namespace pace
