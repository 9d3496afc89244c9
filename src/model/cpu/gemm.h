// Gemm: products of activations and packed weights, shared out over a threads.
//
// Several products with their own rows and matrices form one parallel loop, so
// that the experts of a layer cost no more than one matrix of their size.
#ifndef PACE_MODEL_CPU_GEMM_H_
#define PACE_MODEL_CPU_GEMM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "model/cpu/kernels/kernels.h"
#include "model/cpu/packed_matrix.h"
#include "model/cpu/thread_pool.h"

namespace pace {

// Rows times one matrix. See GemmTask for the meaning of the fields.
struct GemmProduct {
  const PackedMatrix* matrix = nullptr;
  const void* x = nullptr;  // of the matrix's element type
  int64_t x_stride = 0;
  int64_t num_rows = 0;
  Epilogue epilogue = Epilogue::kStore;
  bool out_is_bf16 = false;
  void* out = nullptr;
  int64_t out_stride = 0;
};

class Gemm {
 public:
  Gemm(const Kernels& kernels, ThreadPool& threads) : kernels_(kernels), threads_(threads) {}

  // Products write to different memory.
  void Run(std::span<const GemmProduct> products);

 private:
  // Consecutive panels of one block of rows.
  struct Share {
    int64_t product = 0;
    int64_t row = 0;
    int64_t num_rows = 0;
    int64_t panel = 0;
    int64_t num_panels = 0;
  };

  void Divide(std::span<const GemmProduct> products);
  void RunShare(std::span<const GemmProduct> products, const Share& share) const;

  const Kernels& kernels_;
  ThreadPool& threads_;
  std::vector<Share> shares_;
  bool is_small_ = false;  // too little work to share out
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_GEMM_H_
