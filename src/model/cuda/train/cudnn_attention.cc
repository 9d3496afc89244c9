#include "model/cuda/train/cudnn_attention.h"

#include <c10/cuda/CUDAStream.h>
#include <cudnn_frontend.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/check.h"
#include "model/cuda/capture_gate.h"

namespace pace {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;
using TensorPtr = std::shared_ptr<Tensor_attributes>;

// The tensors of both graphs, by the numbers that cuDNN knows them by.
enum Name : int64_t {
  kQueries = 1,
  kKeys,
  kValues,
  kOutput,
  kStatistics,
  kGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kQueryOffsets,
  kKeyOffsets,
  kValueOffsets,
  kStatisticsOffsets,
  kLengths,
};
using Pointers = std::unordered_map<int64_t, void*>;

void Check(fe::error_t error) {
  TORCH_CHECK(error.is_good(), "cuDNN attention: ", error.get_message());
}

// One for each thread, as cuDNN asks; on the current stream.
cudnnHandle_t Handle() {
  struct Owner {
    Owner() { TORCH_CHECK(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS, "cuDNN does not start"); }
    cudnnHandle_t handle = nullptr;  // for the rest of the process
  };
  thread_local Owner owner;
  TORCH_CHECK(cudnnSetStream(owner.handle, c10::cuda::getCurrentCUDAStream().stream()) ==
                  CUDNN_STATUS_SUCCESS,
              "cuDNN takes no stream");
  return owner.handle;
}

// One direction of attention for batches up to a size.
class Plan {
 public:
  Plan(const AttentionHeads& heads, const AttentionPlanSize& size, bool is_backward)
      : heads_(heads), size_(size) {
    graph_.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    query_offsets_ = Numbers(kQueryOffsets, size.num_sequences + 1);
    key_offsets_ = Numbers(kKeyOffsets, size.num_sequences + 1);
    value_offsets_ = Numbers(kValueOffsets, size.num_sequences + 1);
    statistics_offsets_ = Numbers(kStatisticsOffsets, size.num_sequences + 1);
    lengths_ = Numbers(kLengths, size.num_sequences);
    is_backward ? AddBackward() : AddForward();
    const cudnnHandle_t handle = Handle();
    Check(graph_.validate());
    Check(graph_.build_operation_graph(handle));
    Check(graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
    Check(graph_.check_support());
    Check(graph_.build_plans());
    Check(graph_.get_workspace_size(workspace_bytes_));
  }

  void Run(Pointers pointers, const at::Tensor& offsets) {
    const auto row = [&](int64_t index) {
      return offsets.data_ptr<int>() + index * offsets.size(1);
    };
    pointers.insert({{kQueryOffsets, row(0)},
                     {kKeyOffsets, row(1)},
                     {kValueOffsets, row(2)},
                     {kStatisticsOffsets, row(3)},
                     {kLengths, row(4)}});
    const at::Tensor workspace =
        at::empty({std::max<int64_t>(workspace_bytes_, 1)}, offsets.options().dtype(at::kByte));
    std::optional<SharedCaptureGate> gate;  // the first run may load kernels
    if (!std::exchange(has_run_, true)) gate.emplace();
    Check(graph_.execute(Handle(), pointers, workspace.data_ptr()));
  }

 private:
  TensorPtr Numbers(Name name, int64_t count) {
    return graph_.tensor(Tensor_attributes()
                             .set_uid(name)
                             .set_dim({count, 1, 1, 1})
                             .set_stride({1, 1, 1, 1})
                             .set_data_type(fe::DataType_t::INT32));
  }
  // Of cuDNN's order [sequences, heads, tokens, head_dim]; where a sequence begins, the offsets
  // say.
  std::vector<int64_t> DimOf(int64_t num_heads) const {
    return {size_.num_sequences, num_heads, size_.longest, heads_.head_dim};
  }
  std::vector<int64_t> StrideOf(int64_t row) const {
    return {size_.longest * row, heads_.head_dim, row, 1};
  }
  Tensor_attributes Rows(Name name, int64_t num_heads, int64_t row,
                         const TensorPtr& offsets) const {
    return Tensor_attributes()
        .set_uid(name)
        .set_dim(DimOf(num_heads))
        .set_stride(StrideOf(row))
        .set_ragged_offset(offsets);
  }
  int64_t query_row() const { return heads_.num_heads * heads_.head_dim; }
  int64_t key_row() const { return heads_.num_kv_heads * heads_.head_dim; }

  TensorPtr QueryRows(Name name) {
    return graph_.tensor(Rows(name, heads_.num_heads, query_row(), query_offsets_));
  }
  TensorPtr KeyRows() {
    return graph_.tensor(Rows(kKeys, heads_.num_kv_heads, key_row(), key_offsets_));
  }
  TensorPtr ValueRows() {
    return graph_.tensor(Rows(kValues, heads_.num_kv_heads, heads_.value_stride, value_offsets_));
  }
  void MakeOutput(const TensorPtr& tensor, Name name, int64_t num_heads, int64_t row,
                  const TensorPtr& offsets) const {
    tensor->set_output(true)
        .set_uid(name)
        .set_dim(DimOf(num_heads))
        .set_stride(StrideOf(row))
        .set_ragged_offset(offsets);
  }
  // One number for each token and head, tokens outermost.
  void ShapeStatistics(Tensor_attributes& statistics) const {
    statistics.set_uid(kStatistics)
        .set_dim({size_.num_sequences, heads_.num_heads, size_.longest, 1})
        .set_stride({size_.longest * heads_.num_heads, 1, heads_.num_heads, 1})
        .set_data_type(fe::DataType_t::FLOAT)
        .set_ragged_offset(statistics_offsets_);
  }
  template <typename Options>
  Options Causal() const {
    return Options()
        .set_name("attention")
        .set_attn_scale(static_cast<float>(1 / std::sqrt(static_cast<double>(heads_.head_dim))))
        .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0)
        .set_padding_mask(true)
        .set_seq_len_q(lengths_)
        .set_seq_len_kv(lengths_)
        .set_max_total_seq_len_q(size_.num_rows)
        .set_max_total_seq_len_kv(size_.num_rows);
  }

  void AddForward() {
    const auto [output, statistics] =
        graph_.sdpa(QueryRows(kQueries), KeyRows(), ValueRows(),
                    Causal<fe::graph::SDPA_attributes>().set_generate_stats(true));
    MakeOutput(output, kOutput, heads_.num_heads, query_row(), query_offsets_);
    statistics->set_output(true);
    ShapeStatistics(*statistics);
  }

  void AddBackward() {
    Tensor_attributes statistics;
    ShapeStatistics(statistics);
    const auto [queries, keys, values] = graph_.sdpa_backward(
        QueryRows(kQueries), KeyRows(), ValueRows(), QueryRows(kOutput), QueryRows(kGradient),
        graph_.tensor(statistics), Causal<fe::graph::SDPA_backward_attributes>());
    MakeOutput(queries, kQueryGradient, heads_.num_heads, query_row(), query_offsets_);
    MakeOutput(keys, kKeyGradient, heads_.num_kv_heads, key_row(), key_offsets_);
    MakeOutput(values, kValueGradient, heads_.num_kv_heads, key_row(), key_offsets_);
  }

  const AttentionHeads heads_;
  const AttentionPlanSize size_;
  fe::graph::Graph graph_;
  TensorPtr query_offsets_, key_offsets_, value_offsets_, statistics_offsets_, lengths_;
  int64_t workspace_bytes_ = 0;
  bool has_run_ = false;
};

// Plans are not safe for several threads, and queueing one is short.
std::mutex plan_mutex;

// Made at first use and kept for the process, which has some dozens; null where cuDNN has none.
// REQUIRES: plan_mutex is held
Plan* PlanFor(const AttentionHeads& heads, const AttentionPlanSize& size, bool is_backward) {
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, AttentionPlanSize, bool>;
  static auto* const plans = new std::map<Key, std::unique_ptr<Plan>>();
  const auto [found, is_new] = plans->try_emplace(Key{
      heads.num_heads, heads.num_kv_heads, heads.head_dim, heads.value_stride, size, is_backward});
  if (is_new) {
    const SharedCaptureGate gate;  // it may load kernels
    try {
      found->second = std::make_unique<Plan>(heads, size, is_backward);
    } catch (const std::exception&) {
      // FlashAttention 2 takes its place.
    }
  }
  return found->second.get();
}

void RunPlan(const AttentionHeads& heads, const AttentionPlanSize& size, bool is_backward,
             const Pointers& pointers, const at::Tensor& offsets) {
  const std::lock_guard lock(plan_mutex);
  Plan* const plan = PlanFor(heads, size, is_backward);
  PACE_CHECK(plan != nullptr, "HasCudnnAttention first");
  plan->Run(pointers, offsets);
}

}  // namespace

bool HasCudnnAttention(const AttentionHeads& heads, const AttentionPlanSize& size) {
  // Gradients of wider heads are not there; offsets are int32.
  const int64_t widest = std::max(heads.num_heads * heads.head_dim, heads.value_stride);
  if (heads.head_dim % 8 != 0 || heads.head_dim > 128 ||
      size.num_rows * widest >= std::numeric_limits<int>::max()) {
    return false;
  }
  const std::lock_guard lock(plan_mutex);
  return PlanFor(heads, size, /*is_backward=*/false) != nullptr &&
         PlanFor(heads, size, /*is_backward=*/true) != nullptr;
}

std::vector<at::Tensor> CudnnForward(const AttentionHeads& heads, const AttentionPlanSize& size,
                                     const at::Tensor& offsets, const AttentionInputs& inputs) {
  const at::Tensor& queries = inputs.queries;
  const at::Tensor output = at::empty_like(queries);
  const at::Tensor statistics =
      at::empty({queries.size(0), heads.num_heads}, queries.options().dtype(at::kFloat));
  RunPlan(heads, size, /*is_backward=*/false,
          {{kQueries, queries.data_ptr()},
           {kKeys, inputs.keys.data_ptr()},
           {kValues, inputs.values.data_ptr()},
           {kOutput, output.data_ptr()},
           {kStatistics, statistics.data_ptr()}},
          offsets);
  return {output, statistics};
}

AttentionInputs CudnnBackward(const AttentionHeads& heads, const AttentionPlanSize& size,
                              const at::Tensor& offsets, const AttentionInputs& inputs,
                              const std::vector<at::Tensor>& kept, const at::Tensor& gradient) {
  PACE_CHECK(kept.size() == 2, kept.size(), " tensors");
  const AttentionInputs out = {.queries = at::empty_like(inputs.queries),
                               .keys = at::empty_like(inputs.keys),
                               .values = at::empty_like(inputs.keys)};
  RunPlan(heads, size, /*is_backward=*/true,
          {{kQueries, inputs.queries.data_ptr()},
           {kKeys, inputs.keys.data_ptr()},
           {kValues, inputs.values.data_ptr()},
           {kOutput, kept[0].data_ptr()},
           {kStatistics, kept[1].data_ptr()},
           {kGradient, gradient.data_ptr()},
           {kQueryGradient, out.queries.data_ptr()},
           {kKeyGradient, out.keys.data_ptr()},
           {kValueGradient, out.values.data_ptr()}},
          offsets);
  return out;
}

}  // namespace pace
