// TensorSpool: tensors set down on the disk one at a time, then seen together.
//
// For converting a model that does not fit in memory: each tensor is encoded and
// appended to a file, which Finish maps. The file is unlinked once it is mapped, or when
// the spool is destroyed.
//
//   Result<TensorSpool> spool = TensorSpool::Create(folder);
//   for (const auto& [name, values] : all) {
//     PACE_RETURN_IF_ERROR(spool->Add(name, {std::ssize(values)}, values, Dtype::kBF16));
//   }
//   Result<SpooledTensors> tensors = spool->Finish();
//
// Thread-safety: none.
#ifndef PACE_FORMATS_TENSOR_SPOOL_H_
#define PACE_FORMATS_TENSOR_SPOOL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/status.h"
#include "formats/dtype.h"
#include "formats/tensor_view.h"

namespace pace {

struct SpooledTensors {
  TensorViews views;
  std::shared_ptr<const void> owner;  // keeps the views alive
};

class TensorSpool {
 public:
  // Into an existing folder.
  static Result<TensorSpool> Create(const std::string& folder);
  TensorSpool(TensorSpool&&) = default;
  TensorSpool& operator=(TensorSpool&&) = delete;
  ~TensorSpool();

  // A name given twice is an error. REQUIRES: F32, F16 or BF16; values fit shape
  Status Add(const std::string& name, std::vector<int64_t> shape, std::span<const float> values,
             Dtype dtype);
  // The last call.
  Result<SpooledTensors> Finish();

 private:
  TensorSpool(std::string path, std::unique_ptr<WritableFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  struct Entry {
    std::string name;
    Dtype dtype = Dtype::kF32;
    std::vector<int64_t> shape;
    size_t begin = 0;
    size_t num_bytes = 0;
  };

  std::string path_;
  std::unique_ptr<WritableFile> file_;  // null once finished or moved from
  size_t size_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace pace

#endif  // PACE_FORMATS_TENSOR_SPOOL_H_
