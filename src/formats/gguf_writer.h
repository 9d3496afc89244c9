// Writing GGUF, version 3, little-endian, as llama.cpp and the `gguf` package
// read it.
//
//   GgufWriter writer;
//   writer.PutText("general.architecture", "llama");
//   writer.AddTensor("output_norm.weight", kGgmlF32, {576});
//   Status status = writer.Write(path, [&](size_t index) { return tensors[index]; });
//
// Keys and tensors are written in the order they came. Values are asked for one
// tensor at a time, so a model need not fit in memory. The file is written aside
// and renamed (atomic_file.h).
// Thread-safety: none.
#ifndef PACE_FORMATS_GGUF_WRITER_H_
#define PACE_FORMATS_GGUF_WRITER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "formats/gguf.h"

namespace pace {

class GgufWriter {
 public:
  void PutText(std::string_view key, std::string_view text);
  void PutU32(std::string_view key, uint32_t value);
  void PutF32(std::string_view key, float value);
  void PutBool(std::string_view key, bool value);
  void PutTexts(std::string_view key, std::span<const std::string> texts);
  void PutI32s(std::string_view key, std::span<const int32_t> values);
  void PutF32s(std::string_view key, std::span<const float> values);

  // Slowest dimension first. REQUIRES: F32, F16, BF16 or Q8_0, whose rows are
  // multiples of 32; dimensions at least 1, between one and four of them
  void AddTensor(std::string_view name, uint32_t type, std::vector<int64_t> shape);
  size_t num_tensors() const { return tensors_.size(); }
  const std::string& tensor_name(size_t index) const { return tensors_[index].name; }

  // `values_of` gives the floats of a tensor by its index, in C order.
  Status Write(const std::string& path,
               const std::function<Result<std::vector<float>>(size_t)>& values_of) const;

 private:
  struct Tensor {
    std::string name;
    uint32_t type = 0;
    std::vector<int64_t> shape;
    int64_t num_values = 0;
    uint64_t num_bytes = 0;
  };

  void PutKey(std::string_view key, GgufType type);
  std::string Header() const;

  std::string metadata_;
  uint64_t num_pairs_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace pace

#endif  // PACE_FORMATS_GGUF_WRITER_H_
