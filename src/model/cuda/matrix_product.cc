#include "model/cuda/matrix_product.h"

#include <utility>

namespace pace::cuda {
namespace {

Status ToStatus(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return Status::Ok();
  const cudaError_t cause = cudaPeekAtLastError();
  return Unavailable("cuBLAS: ", what, ": ", cublasLtGetStatusString(status),
                     cause == cudaSuccess ? "" : ": ",
                     cause == cudaSuccess ? "" : cudaGetErrorString(cause));
}

cudaDataType_t TypeOf(Element element) {
  return element == Element::kFloat ? CUDA_R_32F : CUDA_R_16BF;
}

// Columns of cuBLAS are our rows.
cublasStatus_t MakeLayout(cublasLtMatrixLayout_t& layout, Element element, int64_t width,
                          int64_t num_rows, int64_t stride) {
  return cublasLtMatrixLayoutCreate(&layout, TypeOf(element), static_cast<uint64_t>(width),
                                    static_cast<uint64_t>(num_rows), stride);
}

}  // namespace

Result<std::unique_ptr<MatrixProduct>> MatrixProduct::Create(int64_t workspace_bytes) {
  std::unique_ptr<MatrixProduct> made(new MatrixProduct());
  PACE_RETURN_IF_ERROR(ToStatus(cublasLtCreate(&made->handle_), "create"));
  PACE_ASSIGN_OR_RETURN(made->workspace_, DeviceMemory::Allocate(workspace_bytes, "workspace"));
  made->workspace_bytes_ = static_cast<size_t>(workspace_bytes);
  return made;
}

MatrixProduct::~MatrixProduct() {
  for (auto& [shape, plan] : plans_) {
    if (plan.weight != nullptr) cublasLtMatrixLayoutDestroy(plan.weight);
    if (plan.x != nullptr) cublasLtMatrixLayoutDestroy(plan.x);
    if (plan.out != nullptr) cublasLtMatrixLayoutDestroy(plan.out);
    if (plan.product != nullptr) cublasLtMatmulDescDestroy(plan.product);
  }
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

Status MatrixProduct::Choose(Plan& plan) {
  cublasLtMatmulPreference_t preference = nullptr;
  PACE_RETURN_IF_ERROR(ToStatus(cublasLtMatmulPreferenceCreate(&preference), "preference"));
  cublasStatus_t status =
      cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                           &workspace_bytes_, sizeof(workspace_bytes_));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatmulAlgoGetHeuristic(handle_, plan.product, plan.weight, plan.x, plan.out,
                                            plan.out, preference, 1, &found, &count);
  }
  cublasLtMatmulPreferenceDestroy(preference);
  PACE_RETURN_IF_ERROR(ToStatus(status, "choose an algorithm"));
  if (count == 0) return Unavailable("cuBLAS: has no algorithm for a product");
  plan.algorithm = found.algo;
  return Status::Ok();
}

Result<const MatrixProduct::Plan*> MatrixProduct::PlanOf(const Shape& shape) {
  const auto found = plans_.find(shape);
  if (found != plans_.end()) return &found->second;
  Plan& plan = plans_[shape];
  const cublasOperation_t transposed = CUBLAS_OP_T;
  PACE_RETURN_IF_ERROR(ToStatus(
      cublasLtMatmulDescCreate(&plan.product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe"));
  PACE_RETURN_IF_ERROR(
      ToStatus(cublasLtMatmulDescSetAttribute(plan.product, CUBLASLT_MATMUL_DESC_TRANSA,
                                              &transposed, sizeof(transposed)),
               "describe"));
  PACE_RETURN_IF_ERROR(ToStatus(
      MakeLayout(plan.weight, shape.element, shape.num_inputs, shape.num_outputs, shape.num_inputs),
      "weight"));
  PACE_RETURN_IF_ERROR(ToStatus(
      MakeLayout(plan.x, shape.element, shape.num_inputs, shape.num_rows, shape.num_inputs), "x"));
  PACE_RETURN_IF_ERROR(ToStatus(
      MakeLayout(plan.out, shape.out_element, shape.num_outputs, shape.num_rows, shape.out_stride),
      "out"));
  PACE_RETURN_IF_ERROR(Choose(plan));
  return &plan;
}

Status MatrixProduct::Run(const Product& product, cudaStream_t stream) {
  PACE_ASSIGN_OR_RETURN(const Plan* found, PlanOf({.num_rows = product.num_rows,
                                                   .num_outputs = product.num_outputs,
                                                   .num_inputs = product.num_inputs,
                                                   .out_stride = product.out_stride,
                                                   .element = product.element,
                                                   .out_element = product.out_element}));
  const Plan& plan = *found;
  const float one = 1;
  const float kept = product.addend != nullptr ? 1 : 0;
  const void* const addend = product.addend != nullptr ? product.addend : product.out;
  return ToStatus(cublasLtMatmul(handle_, plan.product, &one, product.weight, plan.weight,
                                 product.x, plan.x, &kept, addend, plan.out, product.out, plan.out,
                                 &plan.algorithm, workspace_.at(), workspace_bytes_, stream),
                  "multiply");
}

}  // namespace pace::cuda
