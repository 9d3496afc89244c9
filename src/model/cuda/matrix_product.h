// MatrixProduct: products of many rows, by cuBLAS.
// Thread-safety: none.
#ifndef PACE_MODEL_CUDA_MATRIX_PRODUCT_H_
#define PACE_MODEL_CUDA_MATRIX_PRODUCT_H_

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>

#include "core/status.h"
#include "model/cuda/device_memory.h"
#include "model/cuda/kernels.h"

namespace pace::cuda {

// out = x weight^T, or addend + x weight^T: rows of x, rows of weight.
struct Product {
  const void* weight = nullptr;
  const void* x = nullptr;
  void* out = nullptr;
  int64_t num_rows = 0;
  int64_t num_outputs = 0;
  int64_t num_inputs = 0;  // and stride of weight and x
  int64_t out_stride = 0;
  Element element = Element::kFloat;  // of weight and x
  Element out_element = Element::kFloat;
  const void* addend = nullptr;  // as out, which it may be; or null
};

class MatrixProduct {
 public:
  static constexpr int64_t kWorkspaceBytes = int64_t{64} << 20;
  // Keeps a workspace on the device.
  static Result<std::unique_ptr<MatrixProduct>> Create(int64_t workspace_bytes = kWorkspaceBytes);
  ~MatrixProduct();
  MatrixProduct(const MatrixProduct&) = delete;
  MatrixProduct& operator=(const MatrixProduct&) = delete;

  Status Run(const Product& product, cudaStream_t stream);

 private:
  struct Shape {
    int64_t num_rows;
    int64_t num_outputs;
    int64_t num_inputs;
    int64_t out_stride;
    Element element;
    Element out_element;
    friend auto operator<=>(const Shape&, const Shape&) = default;
  };
  struct Plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t weight = nullptr;
    cublasLtMatrixLayout_t x = nullptr;
    cublasLtMatrixLayout_t out = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
  };

  MatrixProduct() = default;
  Result<const Plan*> PlanOf(const Shape& shape);
  Status Choose(Plan& plan);

  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory workspace_;
  size_t workspace_bytes_ = 0;
  std::map<Shape, Plan> plans_;
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_MATRIX_PRODUCT_H_
