// WeightLayout: where every weight of a network lies in one piece of device
// memory, and how weights get there.
//
// The layout is a function of the config, so weights of the same config differ
// in their base address alone and one copy replaces all of them in place.
// Matrices keep the rows of the checkpoint, one after the other, padded to a
// stride; q, k and v lie together, as do gate and up; a tied head is the
// embedding itself. Norms and biases are float32.
//
// Quantization::kFloat8: the matrices of the layers hold rounded values. With halves they are also
// stored in eight bits with a scale for each row, which passes of few rows read; experts are stored
// in eight bits only. A matrix whose width is not a multiple of kFloat8Step is stored in halves
// only, and so are all experts if one of their matrices has such a width.
//
// Thread-safety: immutable after construction; uploads use their own stream.
#ifndef PACE_MODEL_CUDA_DECODE_WEIGHT_LAYOUT_H_
#define PACE_MODEL_CUDA_DECODE_WEIGHT_LAYOUT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/cuda/decode/cuda_ops.h"
#include "model/cuda/device_memory.h"
#include "model/decoder.h"
#include "model/weight_set.h"

namespace pace::cuda {

// In the layout below; or still as a trainer on the device holds them.
struct CudaWeights : DecoderWeights {
  DeviceMemory memory;
  WeightSet on_device;
};

class WeightLayout {
 public:
  WeightLayout(const ModelConfig& config, Element element,
               Quantization quantization = Quantization::kNone);

  int64_t num_bytes() const { return plan_.num_bytes(); }
  // The network whose weights begin at `base`.
  NetworkWeights<CudaOps> At(char* base) const;

  // From the host, on a stream of its own; all is there when it returns.
  Status Upload(const WeightSet& weights, char* base) const;
  // Queues the same from weights on the device.
  void Convert(const WeightSet& weights, char* base, cudaStream_t stream) const;
  // Matrices normal with this deviation, norms near 1: for benchmarks.
  Status FillRandom(uint64_t seed, double deviation, char* base) const;

 private:
  // One tensor of the checkpoint. Each form that it has lies at an offset.
  struct Tensor {
    std::string name;
    int64_t num_rows = 0;
    int64_t width = 0;
    Element element = Element::kFloat;
    bool is_rounded = false;
    std::optional<int64_t> offset = {};
    std::optional<int64_t> float8 = {};
    int64_t scales = 0;
    int64_t stride() const { return StrideOf(width); }
  };
  struct Stacked {
    std::optional<int64_t> weight;
    std::optional<int64_t> float8;
    int64_t scales = 0;
    std::optional<int64_t> bias;
    int64_t num_outputs = 0;
    int64_t num_inputs = 0;
  };
  friend class LayoutLoader;

  Stacked AddMatrix(const std::vector<std::string>& names);
  int64_t AddVector(const std::string& name);
  // Queues the conversion of a tensor.
  void Place(const Tensor& tensor, const void* from, Source source, char* base,
             cudaStream_t stream) const;

  const ModelConfig config_;
  const Element element_;
  const Quantization quantization_;
  std::map<std::string, std::vector<int64_t>> shapes_;
  MemoryPlan plan_;
  std::vector<Tensor> tensors_;
  std::map<std::string, Stacked> matrices_;  // by their names
  std::map<std::string, int64_t> vectors_;
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_WEIGHT_LAYOUT_H_
