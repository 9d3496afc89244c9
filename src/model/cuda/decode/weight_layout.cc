#include "model/cuda/decode/weight_layout.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pace::cuda {

// The loader of network.h: the first walk over a network slots its tensors,
// later ones find them.
class LayoutLoader {
 public:
  LayoutLoader(WeightLayout& layout, char* base) : layout_(layout), base_(base) {}

  CudaOps::Matrix Stack(const std::vector<std::string>& names) {
    const WeightLayout::Stacked placed = layout_.AddMatrix(names);
    return {
        .weight = placed.weight ? base_ + *placed.weight : nullptr,
        .float8 = placed.float8 ? base_ + *placed.float8 : nullptr,
        .scales = placed.float8 ? reinterpret_cast<const float*>(base_ + placed.scales) : nullptr,
        .num_outputs = placed.num_outputs,
        .num_inputs = placed.num_inputs,
        .bias = placed.bias ? reinterpret_cast<const float*>(base_ + *placed.bias) : nullptr};
  }
  CudaOps::Matrix GateUp(const std::string& gate, const std::string& up) {
    return Stack({gate, up});
  }
  CudaOps::Matrix Embedding(const std::string& name) { return Stack({name}); }
  CudaOps::Vector Load(const std::string& name) {
    return reinterpret_cast<const float*>(base_ + layout_.AddVector(name + ".weight"));
  }

 private:
  WeightLayout& layout_;
  char* base_;
};

namespace {

Source SourceOf(Dtype dtype) {
  if (dtype == Dtype::kF32) return Source::kF32;
  return dtype == Dtype::kF16 ? Source::kF16 : Source::kBF16;
}

// A stream for one upload.
class UploadStream {
 public:
  static Result<UploadStream> Create() {
    UploadStream stream;
    PACE_RETURN_IF_ERROR(
        ToStatus(cudaStreamCreateWithFlags(&stream.stream_, cudaStreamNonBlocking), "stream"));
    return stream;
  }
  UploadStream(UploadStream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  UploadStream& operator=(UploadStream&&) = delete;
  ~UploadStream() {
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }
  cudaStream_t get() const { return stream_; }
  Status Finish() const {
    PACE_RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream_), "weights"));
    return ToStatus(cudaGetLastError(), "weights");
  }

 private:
  UploadStream() = default;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

WeightLayout::WeightLayout(const ModelConfig& config, Element element, Quantization quantization)
    : config_(config), element_(element), quantization_(quantization) {
  for (Parameter& parameter : ParametersOf(config)) {
    shapes_[parameter.name] = std::move(parameter.shape);
  }
  LayoutLoader loader(*this, nullptr);
  LoadNetwork<CudaOps>(config, loader);
}

NetworkWeights<CudaOps> WeightLayout::At(char* base) const {
  WeightLayout placed = *this;
  LayoutLoader loader(placed, base);
  return LoadNetwork<CudaOps>(config_, loader);
}

WeightLayout::Stacked WeightLayout::AddMatrix(const std::vector<std::string>& names) {
  const std::string& key = names.front();
  const auto found = matrices_.find(key);
  if (found != matrices_.end()) return found->second;
  Stacked stacked;
  bool has_bias = false;
  const bool is_rounded = quantization_ == Quantization::kFloat8 && IsQuantized(key + ".weight");
  bool is_float8 = is_rounded && element_ == Element::kHalf;
  for (const std::string& name : names) {
    const std::vector<int64_t>& shape = shapes_.at(name + ".weight");
    stacked.num_outputs += shape[0];
    stacked.num_inputs = StrideOf(shape[1]);
    has_bias = has_bias || shapes_.contains(name + ".bias");
    is_float8 = is_float8 && shape[1] % kFloat8Step == 0;
  }
  // All matrices of an expert have the same form, which kernels read for any number of rows.
  const bool is_expert = key.find(".experts.") != std::string::npos;
  if (is_expert) {
    is_float8 = is_float8 && config_.hidden_size % kFloat8Step == 0 &&
                config_.moe->intermediate_size % kFloat8Step == 0;
  }
  if (is_float8) {
    stacked.float8 = plan_.Add(stacked.num_outputs * stacked.num_inputs);
    stacked.scales = plan_.Add(4 * stacked.num_outputs);
  }
  if (!is_float8 || !is_expert) {
    stacked.weight = plan_.Add(stacked.num_outputs * stacked.num_inputs * BytesOf(element_));
  }
  if (has_bias) stacked.bias = plan_.Add(4 * stacked.num_outputs);
  int64_t row = 0;
  for (const std::string& name : names) {
    const std::vector<int64_t>& shape = shapes_.at(name + ".weight");
    Tensor tensor = {.name = name + ".weight",
                     .num_rows = shape[0],
                     .width = shape[1],
                     .element = element_,
                     .is_rounded = is_rounded};
    if (stacked.weight) {
      tensor.offset = *stacked.weight + row * stacked.num_inputs * BytesOf(element_);
    }
    if (stacked.float8) {
      tensor.float8 = *stacked.float8 + row * stacked.num_inputs;
      tensor.scales = stacked.scales + 4 * row;
    }
    tensors_.push_back(std::move(tensor));
    if (shapes_.contains(name + ".bias")) {
      tensors_.push_back({.name = name + ".bias",
                          .num_rows = 1,
                          .width = shape[0],
                          .offset = *stacked.bias + 4 * row});
    }
    row += shape[0];
  }
  matrices_[key] = stacked;
  return stacked;
}

int64_t WeightLayout::AddVector(const std::string& name) {
  const auto found = vectors_.find(name);
  if (found != vectors_.end()) return found->second;
  const int64_t width = shapes_.at(name)[0];
  const int64_t offset = plan_.Add(4 * width);
  tensors_.push_back({.name = name, .num_rows = 1, .width = width, .offset = offset});
  vectors_[name] = offset;
  return offset;
}

Status WeightLayout::Upload(const WeightSet& weights, char* base) const {
  PACE_ASSIGN_OR_RETURN(const UploadStream stream, UploadStream::Create());
  size_t largest = 0;
  for (const Tensor& tensor : tensors_) {
    largest = std::max(largest, weights.Get(tensor.name).bytes.size());
  }
  // Elements change their type on the device.
  PACE_ASSIGN_OR_RETURN(
      const DeviceMemory raw,
      DeviceMemory::Allocate(static_cast<int64_t>(largest), "weights on their way"));
  for (const Tensor& tensor : tensors_) {
    const TensorView& view = weights.Get(tensor.name);
    PACE_RETURN_IF_ERROR(ToStatus(cudaMemcpyAsync(raw.at(), view.bytes.data(), view.bytes.size(),
                                                  cudaMemcpyHostToDevice, stream.get()),
                                  tensor.name));
    Place(tensor, raw.at(), SourceOf(view.dtype), base, stream.get());
  }
  return stream.Finish();
}

void WeightLayout::Convert(const WeightSet& weights, char* base, cudaStream_t stream) const {
  for (const Tensor& tensor : tensors_) {
    const TensorView& view = weights.Get(tensor.name);
    Place(tensor, view.bytes.data(), SourceOf(view.dtype), base, stream);
  }
}

void WeightLayout::Place(const Tensor& tensor, const void* from, Source source, char* base,
                         cudaStream_t stream) const {
  if (!tensor.is_rounded) {
    ConvertRows(from, source, tensor.num_rows, tensor.width, base + *tensor.offset, tensor.stride(),
                tensor.element, stream);
    return;
  }
  Float8Rows to = {.stride = tensor.stride(), .element = tensor.element};
  if (tensor.offset) to.rounded = base + *tensor.offset;
  if (tensor.float8) {
    to.values = reinterpret_cast<uint8_t*>(base + *tensor.float8);
    to.scales = reinterpret_cast<float*>(base + tensor.scales);
  }
  RoundRows(from, source, tensor.num_rows, tensor.width, to, stream);
}

Status WeightLayout::FillRandom(uint64_t seed, double deviation, char* base) const {
  PACE_ASSIGN_OR_RETURN(const UploadStream stream, UploadStream::Create());
  int64_t largest = 1;
  for (const Tensor& tensor : tensors_) {
    if (tensor.is_rounded) largest = std::max(largest, tensor.num_rows * tensor.width);
  }
  PACE_ASSIGN_OR_RETURN(const DeviceMemory exact, DeviceMemory::Allocate(4 * largest, "weights"));
  for (const Tensor& tensor : tensors_) {
    const bool is_norm = tensor.name.find("norm") != std::string::npos;
    const bool is_direct = !tensor.is_rounded;
    cuda::FillRandom(is_direct ? base + *tensor.offset : exact.at(),
                     is_direct ? tensor.element : Element::kFloat, tensor.num_rows, tensor.width,
                     is_direct ? tensor.stride() : tensor.width, ++seed, is_norm ? 1.0F : 0.0F,
                     static_cast<float>(deviation), stream.get());
    if (!is_direct) Place(tensor, exact.at(), Source::kF32, base, stream.get());
  }
  return stream.Finish();
}

}  // namespace pace::cuda
