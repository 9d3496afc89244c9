#include "model/cuda/decode/pass_profile.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "model/cuda/capture_gate.h"
#include "model/cuda/decode/cuda_decoder.h"

namespace pace::cuda {
namespace {

constexpr int kRounds = 20;

// Frees what it holds.
struct GraphHolder {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  GraphHolder() = default;
  GraphHolder(const GraphHolder&) = delete;
  GraphHolder& operator=(const GraphHolder&) = delete;
  ~GraphHolder() {
    if (ready != nullptr) (void)cudaGraphExecDestroy(ready);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    if (begin != nullptr) (void)cudaEventDestroy(begin);
    if (end != nullptr) (void)cudaEventDestroy(end);
  }
};

// Seconds of what `body` launches, as a graph.
Result<double> TimeGraph(CudaOps& ops, cudaStream_t stream, const std::function<void()>& body) {
  GraphHolder held;
  {
    const std::unique_lock gate(CaptureGate());
    PACE_RETURN_IF_ERROR(
        ToStatus(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture"));
    body();
    const cudaError_t ended = cudaStreamEndCapture(stream, &held.graph);
    PACE_RETURN_IF_ERROR(ops.TakeStatus());
    PACE_RETURN_IF_ERROR(ToStatus(ended, "capture"));
  }
  PACE_RETURN_IF_ERROR(ToStatus(cudaGraphInstantiate(&held.ready, held.graph, 0), "graph"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaEventCreate(&held.begin), "event"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaEventCreate(&held.end), "event"));
  std::vector<double> all;
  for (int round = 0; round <= kRounds; ++round) {
    PACE_RETURN_IF_ERROR(ToStatus(cudaEventRecord(held.begin, stream), "event"));
    PACE_RETURN_IF_ERROR(ToStatus(cudaGraphLaunch(held.ready, stream), "graph"));
    PACE_RETURN_IF_ERROR(ToStatus(cudaEventRecord(held.end, stream), "event"));
    PACE_RETURN_IF_ERROR(ToStatus(cudaEventSynchronize(held.end), "pass"));
    float milliseconds = 0;
    PACE_RETURN_IF_ERROR(
        ToStatus(cudaEventElapsedTime(&milliseconds, held.begin, held.end), "event"));
    if (round > 0) all.push_back(1e-3 * static_cast<double>(milliseconds));
  }
  std::ranges::sort(all);
  return all[all.size() / 2];
}

using Layer = LayerWeights<CudaOps>;

// What a part cannot do without.
struct Need {
  int64_t num_bytes = 0;
  double num_flops = 0;
};

// Distinct experts that the rows of the last routing selected.
Result<int64_t> SelectedExperts(const ProfiledPass& pass, const CudaOps& ops, cudaStream_t stream) {
  std::vector<int32_t> chosen(
      static_cast<size_t>(pass.num_rows * pass.config.moe->num_experts_per_token));
  PACE_RETURN_IF_ERROR(
      ToStatus(cudaMemcpyAsync(chosen.data(), ops.chosen_experts(), chosen.size() * sizeof(int32_t),
                               cudaMemcpyDeviceToHost, stream),
               "experts"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream), "experts"));
  return static_cast<int64_t>(std::set<int32_t>(chosen.begin(), chosen.end()).size());
}

const CudaOps::Vector* NormOf(const std::optional<CudaOps::Vector>& norm) {
  return norm ? &*norm : nullptr;
}

class PassProfiler {
 public:
  PassProfiler(const ProfiledPass& pass, CudaOps& ops, cudaStream_t stream)
      : pass_(pass), ops_(ops), stream_(stream) {}

  Result<std::vector<DecodePart>> Run() {
    PACE_ASSIGN_OR_RETURN(const bool is_one_kernel, RunsLayersAtOnce());
    if (is_one_kernel) {
      PACE_RETURN_IF_ERROR(MeasureLayers());
    } else {
      PACE_RETURN_IF_ERROR(FindWorkspaces());
      PACE_RETURN_IF_ERROR(MeasureAttention());
      PACE_RETURN_IF_ERROR(pass_.config.moe ? MeasureExperts() : MeasureMlp());
    }
    PACE_RETURN_IF_ERROR(MeasureAnswers());
    return std::move(parts_);
  }

 private:
  void Begin() {
    ops_.Begin(pass_.metadata, pass_.cache, pass_.layer_bytes);
    x_ = ops_.Embed(pass_.network.embedding);
  }
  int64_t BytesOfMatrix(const CudaOps::Matrix& matrix) const {
    return ElementsOf(matrix) *
           (CudaOps::ReadsFloat8(matrix, pass_.num_rows) ? 1 : BytesOf(pass_.element));
  }
  static int64_t ElementsOf(const CudaOps::Matrix& matrix) {
    return matrix.num_outputs * matrix.num_inputs;
  }
  Need NeedOf(const CudaOps::Matrix& matrix) const {
    return {BytesOfMatrix(matrix), FlopsOf(matrix, pass_.num_rows)};
  }
  static double FlopsOf(const CudaOps::Matrix& matrix, int64_t num_rows) {
    return 2.0 * static_cast<double>(num_rows) * static_cast<double>(ElementsOf(matrix));
  }

  Result<bool> RunsLayersAtOnce() {
    Begin();
    const bool runs = ops_.Layers(pass_.network.layers, x_);
    PACE_RETURN_IF_ERROR(ops_.TakeStatus());
    return runs;
  }

  int64_t BytesOfContext() const {
    return pass_.num_context_tokens * 2 * pass_.config.kv_size() * BytesOf(pass_.element);
  }

  // Its pieces overlap, so it is one part.
  Status MeasureLayers() {
    int64_t num_bytes = 0;
    for (const Layer& layer : pass_.network.layers) {
      const Expert<CudaOps>& mlp = layer.experts.front();
      for (const CudaOps::Matrix* const matrix :
           {&layer.qkv, &layer.output, &mlp.gate_up, &mlp.down}) {
        num_bytes += ElementsOf(*matrix) * (matrix->float8 != nullptr ? 1 : BytesOf(pass_.element));
      }
      num_bytes += BytesOfContext();
    }
    PACE_ASSIGN_OR_RETURN(const double seconds, TimeGraph(ops_, stream_, [&] {
                            Begin();
                            ops_.Layers(pass_.network.layers, x_);
                          }));
    parts_.push_back({.name = "all layers", .seconds = seconds, .num_bytes = num_bytes});
    return Status::Ok();
  }

  // One pass through the attention of the first layer finds them.
  Status FindWorkspaces() {
    const Layer& first = pass_.network.layers.front();
    Begin();
    qkv_ = ops_.Linear(ops_.Norm(x_, first.attention_norm), first.qkv);
    ops_.Rotate(qkv_, NormOf(first.q_norm), NormOf(first.k_norm));
    attended_ = ops_.Attend(qkv_, 0);
    return ops_.TakeStatus();
  }

  // `of_layer` launches the part in one layer, `need_of_layer` is what it needs there.
  template <typename OfLayer, typename NeedOfLayer>
  Status Measure(const std::string& name, const OfLayer& of_layer,
                 const NeedOfLayer& need_of_layer) {
    DecodePart part{.name = name};
    for (const Layer& layer : pass_.network.layers) {
      const Need need = need_of_layer(layer);
      part.num_bytes += need.num_bytes;
      part.num_flops += need.num_flops;
    }
    PACE_ASSIGN_OR_RETURN(part.seconds, TimeGraph(ops_, stream_, [&] {
                            Begin();
                            for (int64_t index = 0; const Layer& layer : pass_.network.layers)
                              of_layer(layer, index++);
                          }));
    parts_.push_back(std::move(part));
    return Status::Ok();
  }

  Status MeasureAttention() {
    PACE_RETURN_IF_ERROR(Measure(
        "norm, q, k and v",
        [&](const Layer& layer, int64_t /*index*/) {
          ops_.Linear(ops_.Norm(x_, layer.attention_norm), layer.qkv);
        },
        [&](const Layer& layer) { return NeedOf(layer.qkv); }));
    const Need attention{BytesOfContext(),
                         4 * pass_.num_pairs * static_cast<double>(pass_.config.query_size())};
    PACE_RETURN_IF_ERROR(Measure(
        "rotary and attention",
        [&](const Layer& layer, int64_t index) {
          ops_.Rotate(qkv_, NormOf(layer.q_norm), NormOf(layer.k_norm));
          ops_.Attend(qkv_, index);
        },
        [&](const Layer& /*layer*/) { return attention; }));
    return Measure(
        "attention's output",
        [&](const Layer& layer, int64_t /*index*/) { ops_.AddLinear(x_, attended_, layer.output); },
        [&](const Layer& layer) { return NeedOf(layer.output); });
  }

  Status MeasureMlp() {
    CudaOps::Rows gated;
    PACE_RETURN_IF_ERROR(Measure(
        "norm, gate and up",
        [&](const Layer& layer, int64_t /*index*/) {
          gated = ops_.Gated(ops_.Norm(x_, layer.mlp_norm), layer.experts.front().gate_up);
        },
        [&](const Layer& layer) { return NeedOf(layer.experts.front().gate_up); }));
    return Measure(
        "down",
        [&](const Layer& layer, int64_t /*index*/) {
          ops_.AddLinear(x_, gated, layer.experts.front().down);
        },
        [&](const Layer& layer) { return NeedOf(layer.experts.front().down); });
  }

  // Sparse layers only.
  Status MeasureExperts() {
    PACE_RETURN_IF_ERROR(Measure(
        "norm, router",
        [&](const Layer& layer, int64_t /*index*/) {
          if (layer.router) ops_.Route(ops_.Norm(x_, layer.mlp_norm), *layer.router);
        },
        [&](const Layer& layer) { return layer.router ? NeedOf(*layer.router) : Need{}; }));
    // The routing of the last layer stays.
    PACE_ASSIGN_OR_RETURN(const int64_t selected, SelectedExperts(pass_, ops_, stream_));
    return Measure(
        "experts",
        [&](const Layer& layer, int64_t /*index*/) {
          if (layer.router) ops_.AddExperts(x_, x_, {}, layer.experts);
        },
        [&](const Layer& layer) {
          const Expert<CudaOps>& expert = layer.experts.front();
          const int64_t slots = pass_.num_rows * pass_.config.moe->num_experts_per_token;
          if (!layer.router) return Need{};
          return Need{selected * (BytesOfMatrix(expert.gate_up) + BytesOfMatrix(expert.down)),
                      FlopsOf(expert.gate_up, slots) + FlopsOf(expert.down, slots)};
        });
  }

  Status MeasureAnswers() {
    if (pass_.metadata.shape().num_requests == 0) return Status::Ok();
    PACE_ASSIGN_OR_RETURN(const double seconds, TimeGraph(ops_, stream_, [&] {
                            Begin();
                            ops_.RunRequests(ops_.Norm(x_, pass_.network.final_norm),
                                             pass_.network.head);
                          }));
    parts_.push_back({.name = "logits and draws",
                      .seconds = seconds,
                      .num_bytes = BytesOfMatrix(pass_.network.head)});
    return Status::Ok();
  }

  const ProfiledPass& pass_;
  CudaOps& ops_;
  const cudaStream_t stream_;
  CudaOps::Rows x_;
  CudaOps::Rows qkv_;
  CudaOps::Rows attended_;
  std::vector<DecodePart> parts_;
};

}  // namespace

Result<std::vector<DecodePart>> ProfilePass(const ProfiledPass& pass, CudaOps& ops,
                                            cudaStream_t stream) {
  return PassProfiler(pass, ops, stream).Run();
}

Result<int64_t> CountExperts(const ProfiledPass& pass, CudaOps& ops, cudaStream_t stream) {
  ops.Begin(pass.metadata, pass.cache, pass.layer_bytes);
  CudaOps::Rows x = ops.Embed(pass.network.embedding);
  int64_t selected = 0;
  for (int64_t index = 0; const Layer& layer : pass.network.layers) {
    RunLayer(layer, index++, ops, x);
    PACE_RETURN_IF_ERROR(ops.TakeStatus());
    if (!layer.router) continue;
    PACE_ASSIGN_OR_RETURN(const int64_t here, SelectedExperts(pass, ops, stream));
    selected += here;
  }
  return selected;
}

}  // namespace pace::cuda
