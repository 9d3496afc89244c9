// Kernels: the inner loops, once per instruction set.
//
// A kernel works on one thread's share: raw pointers and sizes in, no checks,
// no allocation. Rows are computed in an order of operations that depends on
// the row alone, so its bits depend on neither its neighbours nor the share.
//
// All levels agree to the bit: every multiply-add is fused, every reduction
// has one order. Exceptions are bf16 products with instructions of their own:
// AMX flushes subnormals, and BFMMLA rounds in another way.
//
// Layouts. Activations are rows with a stride; the columns between a row's width
// and the next multiple of kPanelWidth are 0 and stay 0. Weights are panels of
// kPanelWidth outputs:
//   float32  [depth][32]
//   bf16     [depth / 32][2 halves][16 pairs][16 outputs][2], depth padded with 0
// A gated matrix has in each panel 16 gate outputs, then the 16 up outputs of
// the same index.
// Thread-safety: pure functions of their arguments.
#ifndef PACE_MODEL_CPU_KERNELS_KERNELS_H_
#define PACE_MODEL_CPU_KERNELS_KERNELS_H_

#include <cstdint>

namespace pace {

inline constexpr int64_t kLanes = 16;
inline constexpr int64_t kPanelWidth = 32;
// Inputs that one step of a bf16 panel takes.
inline constexpr int64_t kDepthStep = 32;

enum class Epilogue {
  kStore,  // out = y
  kAdd,    // out += y
  kGated,  // out = silu(gate) * up, half as wide
};

// y = x W^T + bias over some rows and panels.
struct GemmTask {
  const void* x = nullptr;  // float; of bf16 panels: bf16, with 16 rows readable per 16 begun
  int64_t x_stride = 0;     // elements
  int64_t num_rows = 0;
  const void* panels = nullptr;
  int64_t num_panels = 0;
  int64_t depth = 0;            // of bf16 panels: padded
  const float* bias = nullptr;  // as long as the panels are wide, or null
  Epilogue epilogue = Epilogue::kStore;
  bool out_is_bf16 = false;  // kGated only
  void* out = nullptr;
  int64_t out_stride = 0;  // elements
};

// Rows that one AttendTask may have.
inline constexpr int64_t kMaxAttendRows = 12;

// Attention of some rows (a query and a head each) that read the same key and
// value head. Blocks of kLanes tokens: keys [head_dim][16], values
// [16][padded_dim], in float or bf16.
struct AttendTask {
  int64_t num_rows = 0;
  const float* queries[kMaxAttendRows] = {};
  int64_t num_keys[kMaxAttendRows] = {};  // each row sees its first ones; not falling
  void* outputs[kMaxAttendRows] = {};     // head_dim elements each
  bool out_is_bf16 = false;
  const int32_t* blocks = nullptr;
  const char* keys = nullptr;    // of block 0
  const char* values = nullptr;  // of block 0
  int64_t block_stride = 0;      // bytes
  bool cache_is_bf16 = false;
  int64_t head_dim = 0;
  int64_t padded_dim = 0;  // a multiple of kLanes
  float scale = 0;
  float* scores = nullptr;   // scratch, [kMaxAttendRows][score_stride]
  int64_t score_stride = 0;  // at least num_keys, rounded up to 16
  float* packed = nullptr;   // scratch, [head_dim][kMaxAttendRows]
  float* sums = nullptr;     // scratch, [kMaxAttendRows][padded_dim]
};

struct Kernels {
  void (*gemm_f32)(const GemmTask& task);
  void (*gemm_bf16)(const GemmTask& task);
  void (*attend)(const AttendTask& task);

  // out = x / sqrt(mean(x^2) + epsilon) * weight
  void (*rms_norm)(const float* x, const float* weight, int64_t n, float epsilon, float* out);
  // Turns element i of the first half against element i of the second.
  void (*rotate)(float* head, const float* cosines, const float* sines, int64_t half);
  // y += a * x
  void (*add_scaled)(float a, const float* x, int64_t n, float* y);
  // Rounds to nearest, ties to even; and back.
  void (*to_bf16)(const float* x, int64_t n, uint16_t* out);
  void (*from_bf16)(const uint16_t* x, int64_t n, float* out);

  // The largest of n >= 1.
  float (*max_of)(const float* x, int64_t n);
  // Sum of exp((x - shift) * scale); `out`, if not null, receives the terms.
  float (*exp_sum)(const float* x, int64_t n, float shift, float scale, float* out);
  // Sum of those that are at least `limit`.
  float (*sum_at_least)(const float* x, int64_t n, float limit);
  // Indices of those that are at least `limit`, rising; returns how many.
  int64_t (*find_at_least)(const float* x, int64_t n, float limit, int32_t* out);
};

// The kernels of each level, each compiled with its own flags; isa.h chooses among them.
extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
void GemmAmx(const GemmTask& task);
#elif defined(__aarch64__)
extern const Kernels kNeonKernels;
void GemmNeonF32(const GemmTask& task);
void GemmNeonBf16(const GemmTask& task);
void GemmBfmmla(const GemmTask& task);
// What becomes of the sums of some rows of a panel.
void FinishNeonRows(const GemmTask& task, int64_t row, int64_t num_rows, int64_t panel,
                    const float (*sums)[kPanelWidth]);
#endif

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_KERNELS_H_
