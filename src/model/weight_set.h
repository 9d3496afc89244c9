// WeightSet: the named weights of one policy version, wherever their bytes lie.
//
// Names are those of the Hugging Face checkpoint. The set shares ownership of
// the memory behind its views (a mapped checkpoint, a trainer's tensors), so it
// can be handed to another thread.
// Thread-safety: immutable.
#ifndef PACE_MODEL_WEIGHT_SET_H_
#define PACE_MODEL_WEIGHT_SET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "formats/tensor_view.h"
#include "model/model_config.h"

namespace pace {

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
};

// What a checkpoint of this config must hold, in a fixed order. A tied head is
// not among them.
std::vector<Parameter> ParametersOf(const ModelConfig& config);

// Where bytes lie: in this process's memory, or in a GPU's, which only a decoder
// there can read (devices.h: ToHost).
enum class Residence { kHost, kDevice };

class WeightSet {
 public:
  WeightSet() = default;
  // Every parameter of the config must be there in its shape, as F32, F16 or
  // BF16, and nothing else (but for lm_head.weight beside tied embeddings, and
  // the rotary tables that old checkpoints carry). Experts may be stacked
  // into one tensor per projection. `owner` keeps the bytes alive.
  static Result<WeightSet> Create(const ModelConfig& config, TensorViews views,
                                  std::shared_ptr<const void> owner,
                                  Residence residence = Residence::kHost);
  // The checkpoint of a folder, mapped.
  static Result<WeightSet> Load(const ModelConfig& config, const std::string& folder);

  const TensorViews& views() const { return views_; }
  Residence residence() const { return residence_; }
  // REQUIRES: a parameter of the config
  const TensorView& Get(std::string_view name) const;
  // Its elements as floats, in C order. REQUIRES: on the host
  std::vector<float> Floats(std::string_view name) const;

 private:
  TensorViews views_;
  std::shared_ptr<const void> owner_;
  Residence residence_ = Residence::kHost;
};

// Elements of an F32, F16 or BF16 tensor as floats. REQUIRES: out fits.
void ReadFloats(const TensorView& tensor, std::span<float> out);

// Refuses NaN and infinities: an error names the first tensor that has any and their number.
// Reads every byte once. REQUIRES: on the host
Status CheckFinite(const WeightSet& weights);

// The same weights in `dtype` (F32, F16 or BF16), rounded to nearest even: one tensor for each of
// ParametersOf. Tensors that have that type already are shared. REQUIRES: on the host
WeightSet InDtype(const ModelConfig& config, const WeightSet& weights, Dtype dtype);

// Writes config.json, generation_config.json and the weights as safetensors in
// `dtype` (F32, F16 or BF16; rounded to nearest even), in shards of at most
// max_shard_bytes. `folder` is made if it is not there and may not hold weights.
// With kWrite the output projection of a tied model is written too, for readers that keep a copy.
enum class TiedHead { kOmit, kWrite };
Status SaveModel(const std::string& folder, const ModelConfig& config, const WeightSet& weights,
                 Dtype dtype, int64_t max_shard_bytes, TiedHead head = TiedHead::kOmit);

// Random weights of a config, for tests and benchmarks: a pure function of the
// seed. Norms near 1, matrices normal with deviation `scale`.
WeightSet RandomWeights(const ModelConfig& config, uint64_t seed, double scale = 0.02);

}  // namespace pace

#endif  // PACE_MODEL_WEIGHT_SET_H_
