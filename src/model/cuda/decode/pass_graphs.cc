#include "model/cuda/decode/pass_graphs.h"

#include <chrono>
#include <mutex>

#include "model/cuda/capture_gate.h"
#include "model/cuda/device_memory.h"

namespace pace::cuda {
namespace {

// Longer than other decoders' passes take to launch.
constexpr std::chrono::microseconds kCapturePatience(500);

}  // namespace

Status PassGraphs::Capture(const PassShape& shape, cudaStream_t stream,
                           const std::function<Status()>& launch) {
  const std::unique_lock gate(CaptureGate(), kCapturePatience);
  if (!gate.owns_lock()) return Status::Ok();
  PACE_RETURN_IF_ERROR(
      ToStatus(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture"));
  Status status = launch();
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  if (status.ok()) status = ToStatus(ended, "capture");
  if (!status.ok()) {
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    return status;
  }
  cudaGraphExec_t ready = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&ready, graph, 0);
  (void)cudaGraphDestroy(graph);
  PACE_RETURN_IF_ERROR(ToStatus(made, "graph"));
  graphs_[shape] = ready;
  return Status::Ok();
}

void PassGraphs::Drop() {
  for (const auto& [shape, graph] : graphs_) (void)cudaGraphExecDestroy(graph);
  graphs_.clear();
}

}  // namespace pace::cuda
