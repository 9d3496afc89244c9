#include "model/cpu/gradient/packed_attention.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "model/cpu/gradient/head_rows.h"
#include "model/cpu/kernels/kernels.h"
#include "model/cpu/packed_matrix.h"

namespace pace {
namespace {

// Queries of one block: times the heads that share a key head, enough rows for
// a product's full speed, and few enough that little above the diagonal is
// computed.
constexpr int64_t kBlockQueries = 32;

template <typename E>
int64_t PanelDepth(int64_t n) {
  return std::is_same_v<E, float> ? n : RoundUp(n, kDepthStep);
}

// One side of a product: rows of `width` elements, or panels of that depth.
struct Operand {
  const void* data = nullptr;
  int64_t count = 0;
  int64_t width = 0;
};

// out = rows panels
GemmTask TaskOf(const Operand& rows, const Operand& panels, float* out, int64_t out_stride,
                Epilogue epilogue = Epilogue::kStore) {
  return {.x = rows.data,
          .x_stride = rows.width,
          .num_rows = rows.count,
          .panels = panels.data,
          .num_panels = panels.count,
          .depth = panels.width,
          .epilogue = epilogue,
          .out = out,
          .out_stride = out_stride};
}

}  // namespace

template <typename E>
E* PackedAttention::Room::Take(int64_t count) {
  const auto num_bytes = count * static_cast<int64_t>(sizeof(E));
  if (buffer_.num_bytes() < num_bytes) {
    buffer_ = AlignedBuffer();
    buffer_ = AlignedBuffer::Allocate(num_bytes).value();
  }
  return buffer_.As<E>();
}

// One call: elements of rows are T, those of products E.
template <typename T, typename E>
class AttentionPass {
 public:
  AttentionPass(PackedAttention& owner, const T* qkv, const PackedAttention::Norms& norms)
      : owner_(owner),
        options_(owner.options_),
        kernels_(owner.kernels_),
        training_(owner.training_),
        tiles_(training_.of<E>()),
        qkv_(qkv),
        norms_(norms),
        group_(options_.num_heads / options_.num_kv_heads),
        dim_(options_.head_dim),
        depth_(PanelDepth<E>(dim_)),
        width_(RoundUp(dim_, kPanelWidth)),
        row_((options_.num_heads + 2 * options_.num_kv_heads) * dim_),
        out_row_(options_.num_heads * dim_),
        scale_(1.0F / std::sqrt(static_cast<float>(dim_))),
        heads_(options_, kernels_, training_, owner.minus_sines_.data(), depth_) {
    int64_t longest = 0;
    for (const int64_t length : options_.lengths) longest = std::max(longest, length);
    longest_ = RoundUp(longest, kPanelWidth);
    block_rows_ = RoundUp(kBlockQueries * group_, kDepthStep);
    const int64_t num_rows = longest_ * group_ + kLanes;
    queries_ = Room<E>(PackedAttention::kQueries, num_rows * depth_);
    keys_ = Room<E>(PackedAttention::kKeys, (longest_ + kLanes) * depth_);
    values_ = Room<E>(PackedAttention::kValues, (longest_ + kLanes) * depth_);
    key_outputs_ = Room<E>(PackedAttention::kKeyOutputs, longest_ * depth_);
    value_panels_ = Room<E>(PackedAttention::kValuePanels, longest_ * std::max(width_, depth_));
    scores_ = Room<float>(PackedAttention::kScores, block_rows_ * longest_);
    rounded_ = RoundedRoom(PackedAttention::kRounded, scores_);
    sums_ = Room<float>(PackedAttention::kSums, block_rows_ * width_);
    inverse_sums_ = Room<float>(PackedAttention::kInverseSums, block_rows_);
  }

  void Forward(T* out, float* log_sums) {
    ForHeads([&](int64_t begin, int64_t length, int64_t kv_head) {
      LoadKeysAndValues(begin, length, kv_head);
      LoadQueries(begin, length, kv_head);
      tiles_.pack_outputs(keys_, depth_, length, dim_, key_outputs_);
      tiles_.pack_inputs(values_, depth_, length, dim_, value_panels_);
      for (int64_t first = 0; first < length; first += kBlockQueries) {
        const Block block = BlockAt(first, length);
        Multiply(TaskOf({queries_ + first * group_ * depth_, block.num_rows, depth_},
                        {key_outputs_, block.width / kPanelWidth, depth_}, scores_, block.width));
        for (int64_t r = 0; r < block.num_rows; ++r) {
          const int64_t token = begin + first + r / group_;
          const int64_t head = kv_head * group_ + r % group_;
          log_sums[token * options_.num_heads + head] = Softmax(r, block);
        }
        MultiplyByRows(rounded_, block, value_panels_, length, sums_);
        for (int64_t r = 0; r < block.num_rows; ++r) {
          const int64_t token = begin + first + r / group_;
          const int64_t head = kv_head * group_ + r % group_;
          float* const sum = sums_ + r * width_;
          for (int64_t i = 0; i < dim_; ++i) sum[i] *= inverse_sums_[r];
          heads_.Store(sum, out + token * out_row_ + head * dim_);
        }
      }
    });
  }

  void Backward(const T* out, const float* log_sums, const T* d_out, T* d_qkv,
                const PackedAttention::NormGradients& d_norms) {
    ReserveForBackward();
    ForHeads([&](int64_t begin, int64_t length, int64_t kv_head) {
      LoadKeysAndValues(begin, length, kv_head);
      LoadQueries(begin, length, kv_head);
      tiles_.pack_outputs(keys_, depth_, length, dim_, key_outputs_);
      tiles_.pack_inputs(keys_, depth_, length, dim_, key_inputs_);
      tiles_.pack_outputs(values_, depth_, length, dim_, value_panels_);
      LoadOutGradients(begin, length, kv_head, out, d_out);
      std::fill_n(key_sums_, length * width_, 0.0F);
      std::fill_n(value_sums_, length * width_, 0.0F);
      for (int64_t first = 0; first < length; first += kBlockQueries) {
        const Block block = BlockAt(first, length);
        ScoreGradients(begin, kv_head, block, log_sums);
        MultiplyByRows(rounded_gradients_, block, key_inputs_, length, sums_);
        for (int64_t r = 0; r < block.num_rows; ++r) {
          const int64_t token = begin + first + r / group_;
          const T* const query = QueryOf(token, kv_head, r);
          heads_.StoreTurnedGradient(sums_ + r * width_, query, norms_.query, token, d_norms.query,
                                     d_qkv + (query - qkv_));
        }
        AddToKeysAndValues(block);
      }
      for (int64_t t = 0; t < length; ++t) {
        const T* const key = KeyOf(begin + t, kv_head);
        T* const d_key = d_qkv + (key - qkv_);
        heads_.StoreTurnedGradient(key_sums_ + t * width_, key, norms_.key, begin + t, d_norms.key,
                                   d_key);
        heads_.Store(value_sums_ + t * width_, d_key + options_.num_kv_heads * dim_);
      }
    });
  }

 private:
  // Queries [first, end) of a sequence, with all heads of one key head.
  struct Block {
    int64_t first = 0;
    int64_t num_rows = 0;  // query by query, each with its heads
    int64_t width = 0;     // keys that some row sees, rounded up to whole panels
  };

  template <typename R>
  R* Room(PackedAttention::Place place, int64_t count) {
    return owner_.rooms_[place].template Take<R>(count);
  }
  // Products take scores as they are, or rounded.
  E* RoundedRoom(PackedAttention::Place place, float* exact) {
    if constexpr (std::is_same_v<E, float>) {
      return exact;
    } else {
      return Room<E>(place, block_rows_ * longest_);
    }
  }

  void ReserveForBackward() {
    const int64_t num_rows = longest_ * group_ + kLanes;
    out_gradients_ = Room<E>(PackedAttention::kOutGradients, num_rows * depth_);
    deltas_ = Room<float>(PackedAttention::kDeltas, num_rows);
    key_inputs_ = Room<E>(PackedAttention::kKeyInputs, longest_ * width_);
    query_panels_ = Room<E>(PackedAttention::kQueryPanels, block_rows_ * width_);
    out_gradient_panels_ = Room<E>(PackedAttention::kOutGradientPanels, block_rows_ * width_);
    gradients_ = Room<float>(PackedAttention::kGradients, block_rows_ * longest_);
    rounded_gradients_ = RoundedRoom(PackedAttention::kRoundedGradients, gradients_);
    columns_ = Room<E>(PackedAttention::kColumns, block_rows_ * longest_);
    gradient_columns_ = Room<E>(PackedAttention::kGradientColumns, block_rows_ * longest_);
    key_sums_ = Room<float>(PackedAttention::kKeySums, longest_ * width_);
    value_sums_ = Room<float>(PackedAttention::kValueSums, longest_ * width_);
  }

  template <typename Body>
  void ForHeads(const Body& body) {
    int64_t begin = 0;
    for (const int64_t length : options_.lengths) {
      for (int64_t head = 0; head < options_.num_kv_heads; ++head) body(begin, length, head);
      begin += length;
    }
  }

  Block BlockAt(int64_t first, int64_t length) const {
    const int64_t end = std::min(length, first + kBlockQueries);
    return {.first = first, .num_rows = (end - first) * group_, .width = RoundUp(end, kPanelWidth)};
  }
  // Of row r of a block or sequence.
  const T* QueryOf(int64_t token, int64_t kv_head, int64_t r) const {
    return qkv_ + token * row_ + (kv_head * group_ + r % group_) * dim_;
  }
  const T* KeyOf(int64_t token, int64_t kv_head) const {
    return qkv_ + token * row_ + (options_.num_heads + kv_head) * dim_;
  }
  int64_t NumKeys(const Block& block, int64_t r) const { return block.first + r / group_ + 1; }

  void LoadQueries(int64_t begin, int64_t length, int64_t kv_head) {
    for (int64_t r = 0; r < length * group_; ++r) {
      const int64_t token = begin + r / group_;
      heads_.LoadTurned(QueryOf(token, kv_head, r), norms_.query, token, queries_ + r * depth_);
    }
  }
  void LoadKeysAndValues(int64_t begin, int64_t length, int64_t kv_head) {
    for (int64_t t = 0; t < length; ++t) {
      const T* const key = KeyOf(begin + t, kv_head);
      heads_.LoadTurned(key, norms_.key, begin + t, keys_ + t * depth_);
      heads_.Load(key + options_.num_kv_heads * dim_, values_ + t * depth_);
    }
  }
  // With delta = sum of the output times its gradient.
  void LoadOutGradients(int64_t begin, int64_t length, int64_t kv_head, const T* out,
                        const T* d_out) {
    for (int64_t r = 0; r < length * group_; ++r) {
      const int64_t at = (begin + r / group_) * out_row_ + (kv_head * group_ + r % group_) * dim_;
      deltas_[r] = heads_.LoadGradient(d_out + at, out + at, out_gradients_ + r * depth_);
    }
  }

  void Multiply(const GemmTask& task) const {
    if constexpr (std::is_same_v<E, float>) {
      kernels_.gemm_f32(task);
    } else {
      kernels_.gemm_bf16(task);
    }
  }
  // Rows over the block's keys, times keys or values packed as inputs.
  void MultiplyByRows(const E* x, const Block& block, const E* panels, int64_t length,
                      float* out) const {
    const int64_t packed = PanelDepth<E>(length);
    const int64_t depth = std::min(block.width, packed);
    for (int64_t panel = 0; panel < width_ / kPanelWidth; ++panel) {
      Multiply(TaskOf({x, block.num_rows, block.width},
                      {panels + panel * packed * kPanelWidth, 1, depth}, out + panel * kPanelWidth,
                      width_));
    }
  }

  // Scores of a row into exponentials, whose sum the output is divided by;
  // returns the logarithm of that of all scores.
  float Softmax(int64_t r, const Block& block) const {
    float* const row = scores_ + r * block.width;
    const int64_t num_keys = NumKeys(block, r);
    const float highest = kernels_.max_of(row, num_keys);
    const float sum = kernels_.exp_sum(row, num_keys, highest, scale_, row);
    inverse_sums_[r] = 1.0F / sum;
    std::fill(row + num_keys, row + block.width, 0.0F);
    if constexpr (!std::is_same_v<E, float>) {
      kernels_.to_bf16(row, block.width, rounded_ + r * block.width);
    }
    return highest * scale_ + std::log(sum);
  }

  // Shares and gradients of scores, as rows and as columns.
  void ScoreGradients(int64_t begin, int64_t kv_head, const Block& block,
                      const float* log_sums) const {
    const int64_t first_row = block.first * group_;
    Multiply(TaskOf({queries_ + first_row * depth_, block.num_rows, depth_},
                    {key_outputs_, block.width / kPanelWidth, depth_}, scores_, block.width));
    Multiply(TaskOf({out_gradients_ + first_row * depth_, block.num_rows, depth_},
                    {value_panels_, block.width / kPanelWidth, depth_}, gradients_, block.width));
    for (int64_t r = 0; r < block.num_rows; ++r) {
      const int64_t token = begin + block.first + r / group_;
      const int64_t head = kv_head * group_ + r % group_;
      const int64_t num_keys = NumKeys(block, r);
      float* const s = scores_ + r * block.width;
      float* const ds = gradients_ + r * block.width;
      training_.score_gradient(s, ds, num_keys, scale_, log_sums[token * options_.num_heads + head],
                               deltas_[first_row + r]);
      std::fill(s + num_keys, s + block.width, 0.0F);
      std::fill(ds + num_keys, ds + block.width, 0.0F);
      if constexpr (!std::is_same_v<E, float>) {
        kernels_.to_bf16(s, block.width, rounded_ + r * block.width);
        kernels_.to_bf16(ds, block.width, rounded_gradients_ + r * block.width);
      }
    }
    const int64_t padded = RoundUp(block.num_rows, kDepthStep);
    const int64_t behind = (padded - block.num_rows) * block.width;
    std::fill_n(rounded_ + block.num_rows * block.width, behind, E{0});
    std::fill_n(rounded_gradients_ + block.num_rows * block.width, behind, E{0});
    tiles_.transpose(rounded_, block.width, padded, block.width, columns_, padded);
    tiles_.transpose(rounded_gradients_, block.width, padded, block.width, gradient_columns_,
                     padded);
  }

  // Values gain shares^T d_out, keys gradients^T queries.
  void AddToKeysAndValues(const Block& block) const {
    const int64_t first_row = block.first * group_;
    const int64_t padded = RoundUp(block.num_rows, kDepthStep);
    const int64_t depth = PanelDepth<E>(block.num_rows);
    const int64_t num_keys = block.first + block.num_rows / group_;
    tiles_.pack_inputs(queries_ + first_row * depth_, depth_, block.num_rows, dim_, query_panels_);
    tiles_.pack_inputs(out_gradients_ + first_row * depth_, depth_, block.num_rows, dim_,
                       out_gradient_panels_);
    Multiply(TaskOf({columns_, num_keys, padded},
                    {out_gradient_panels_, width_ / kPanelWidth, depth}, value_sums_, width_,
                    Epilogue::kAdd));
    Multiply(TaskOf({gradient_columns_, num_keys, padded},
                    {query_panels_, width_ / kPanelWidth, depth}, key_sums_, width_,
                    Epilogue::kAdd));
  }

  PackedAttention& owner_;
  const PackedAttention::Options& options_;
  const Kernels& kernels_;
  const TrainingKernels& training_;
  const TrainingKernels::Of<E>& tiles_;
  const T* const qkv_;
  const PackedAttention::Norms norms_;
  const int64_t group_;  // query heads of a key head
  const int64_t dim_;    // of a head
  const int64_t depth_;  // of a product over it
  const int64_t width_;  // of panels that hold it
  const int64_t row_;    // elements of qkv
  const int64_t out_row_;
  const float scale_;
  HeadRows<T, E> heads_;
  int64_t longest_ = 0;
  int64_t block_rows_ = 0;
  E* queries_ = nullptr;
  E* keys_ = nullptr;
  E* values_ = nullptr;
  E* out_gradients_ = nullptr;
  E* key_outputs_ = nullptr;
  E* key_inputs_ = nullptr;
  E* value_panels_ = nullptr;
  E* query_panels_ = nullptr;
  E* out_gradient_panels_ = nullptr;
  float* scores_ = nullptr;
  float* gradients_ = nullptr;
  E* rounded_ = nullptr;
  E* rounded_gradients_ = nullptr;
  E* columns_ = nullptr;
  E* gradient_columns_ = nullptr;
  float* sums_ = nullptr;
  float* key_sums_ = nullptr;
  float* value_sums_ = nullptr;
  float* inverse_sums_ = nullptr;
  float* deltas_ = nullptr;
};

PackedAttention::PackedAttention(Options options, Isa isa)
    : options_(std::move(options)),
      isa_(isa),
      kernels_(KernelsOf(isa)),
      training_(TrainingKernelsOf(isa)) {
  int64_t num_tokens = 0;
  for (const int64_t length : options_.lengths) num_tokens += length;
  for (int64_t i = 0; i < num_tokens * (options_.head_dim / 2); ++i) {
    minus_sines_.push_back(-options_.sines[i]);
  }
}

int64_t PackedAttention::num_bytes() const {
  int64_t sum = 0;
  for (const Room& room : rooms_) sum += room.num_bytes();
  return sum;
}

template <typename T>
void PackedAttention::Forward(const T* qkv, const Norms& norms, T* out, float* log_sums) {
  if (std::is_same_v<T, float> || !HasBf16Products(isa_)) {
    AttentionPass<T, float>(*this, qkv, norms).Forward(out, log_sums);
  } else {
    AttentionPass<T, uint16_t>(*this, qkv, norms).Forward(out, log_sums);
  }
}

template <typename T>
void PackedAttention::Backward(const T* qkv, const Norms& norms, const T* out,
                               const float* log_sums, const T* d_out, T* d_qkv,
                               const NormGradients& d_norms) {
  if (std::is_same_v<T, float> || !HasBf16Products(isa_)) {
    AttentionPass<T, float>(*this, qkv, norms).Backward(out, log_sums, d_out, d_qkv, d_norms);
  } else {
    AttentionPass<T, uint16_t>(*this, qkv, norms).Backward(out, log_sums, d_out, d_qkv, d_norms);
  }
}

template void PackedAttention::Forward(const float*, const Norms&, float*, float*);
template void PackedAttention::Forward(const uint16_t*, const Norms&, uint16_t*, float*);
template void PackedAttention::Backward(const float*, const Norms&, const float*, const float*,
                                        const float*, float*, const NormGradients&);
template void PackedAttention::Backward(const uint16_t*, const Norms&, const uint16_t*,
                                        const float*, const uint16_t*, uint16_t*,
                                        const NormGradients&);

}  // namespace pace
