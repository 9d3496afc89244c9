// Products of few rows, and mixtures of experts. See kernels.h.
#ifndef PACE_MODEL_CUDA_DECODE_PRODUCT_KERNELS_H_
#define PACE_MODEL_CUDA_DECODE_PRODUCT_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "model/cuda/kernels.h"

namespace pace::cuda {

// Rows of x times the rows of `weight`, for few rows of x: limited by reading
// the weights once. Halves.
enum class StreamOutput {
  kStore,  // out = sum, float
  kAdd,    // out += sum + bias, float
  kGate,   // out = silu(gate) * up, halves; weight holds gate's rows, then up's
};
// Rows that choose the same expert, at most eight at a time.
struct ExpertGroup {
  int32_t expert = 0;
  int32_t num_slots = 0;
  int32_t slots[8] = {};  // row * num_chosen + choice
};
struct StreamArguments {
  const void* weight = nullptr;
  // Not null: `weight` holds eight-bit floats (float8.cuh), to be multiplied by the scale of their
  // row.
  const float* scales = nullptr;
  int64_t num_outputs = 0;  // kGate: of `out`
  int64_t num_inputs = 0;   // stride of weight; a multiple of 8, with scales of kFloat8Step
  const float* bias = nullptr;
  // x: halves; or, with norm_weight, floats to be normed on the way.
  const void* x = nullptr;
  int64_t x_stride = 0;
  int64_t num_rows = 0;
  const float* norm_weight = nullptr;
  int64_t norm_width = 0;
  float epsilon = 0;
  void* out = nullptr;
  int64_t out_stride = 0;
  StreamOutput output = StreamOutput::kStore;
  // With groups: out has a row per slot; x one per slot, or per row where
  // slots_per_row is not 1. Weights of expert e lie e * expert_stride elements on, and its scales
  // as many bytes as its weights.
  const ExpertGroup* groups = nullptr;
  const int32_t* num_groups = nullptr;
  int64_t max_groups = 0;
  int64_t expert_stride = 0;
  int64_t slots_per_row = 1;
};
// Inputs of a row in eight bits that are loaded at once.
inline constexpr int64_t kFloat8Step = 16;
// Most rows of x, without groups; with a norm, which every block computes again
// and whose width must be a multiple of 4.
inline constexpr int64_t kMaxStreamRows = 8;
inline constexpr int64_t kMaxStreamNormRows = 2;
// Rows of x from which on weights in eight bits can be read, without groups.
inline constexpr int64_t kMinFloat8Rows = kMaxStreamNormRows + 1;
inline constexpr int64_t kMaxStreamNormInputs = 4096;
void StreamProduct(const StreamArguments& arguments, cudaStream_t stream);

// The same with groups, for both elements, one warp for an output.
void PlainExperts(const StreamArguments& arguments, const int32_t* experts, int64_t num_slots,
                  Element element, cudaStream_t stream);

// Softmax over the router's logits; the likeliest experts and their weights.
struct RouteArguments {
  const float* logits = nullptr;
  int64_t stride = 0;
  int64_t num_rows = 0;
  int num_experts = 0;
  int num_chosen = 0;
  bool normalize = false;
  int32_t* experts = nullptr;  // num_rows * num_chosen
  float* weights = nullptr;
};
inline constexpr int kMaxExperts = 1024;
inline constexpr int kMaxChosen = 16;
void Route(const RouteArguments& arguments, cudaStream_t stream);
// Most groups that these slots can form.
int64_t MaxExpertGroups(int64_t num_slots, int64_t num_experts);
void GroupSlots(const int32_t* experts, int64_t num_slots, int num_experts, ExpertGroup* groups,
                int32_t* num_groups, cudaStream_t stream);
// x[row] += sum over choices of weight * outputs[slot]
void CombineExperts(float* x, int64_t stride, const float* outputs, const float* weights,
                    int64_t num_rows, int64_t width, int num_chosen, cudaStream_t stream);

// For one or two rows, of halves; the kernels above are for more.
inline constexpr int kMaxExpertRows = 2;

// Norm, router and Route at once. `normed`: rows of router.num_inputs halves.
// REQUIRES: CanRouteRows
bool CanRouteRows(const StreamArguments& router, const RouteArguments& route);
void RouteRows(const StreamArguments& router, const RouteArguments& route, void* normed,
               cudaStream_t stream);

struct FewRowExperts {
  const void* gate_up = nullptr;  // of expert 0
  const void* down = nullptr;
  const float* gate_up_scales = nullptr;  // as StreamArguments::scales
  const float* down_scales = nullptr;
  int64_t expert_stride = 0;  // elements
  int64_t width = 0;          // of gate and of up
  int64_t num_inputs = 0;     // stride of gate_up and x
  int64_t num_outputs = 0;    // of down
  int num_rows = 0;
  int num_chosen = 0;
  const int32_t* experts = nullptr;  // as Route writes them
  const float* weights = nullptr;
  const void* x = nullptr;
  void* gated = nullptr;     // a row per slot
  int64_t gated_stride = 0;  // and that of down
  float* out = nullptr;      // what is added to
  int64_t out_stride = 0;
};
// The kernel before it is the one that made the choice, or one that began after it.
// REQUIRES: CanRunFewRows
bool CanRunFewRows(const FewRowExperts& arguments);
void RunFewRows(const FewRowExperts& arguments, cudaStream_t stream);

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_PRODUCT_KERNELS_H_
