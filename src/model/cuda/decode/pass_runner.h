// PassRunner queues forward passes on a stream and returns their results.
//
// Two passes may be in flight, so that one can be queued before the results of the other
// arrive: Start returns at once, Finish waits. Passes run in the order of their starts.
// Decode passes run as graphs (PassGraphs). Metadata uploads and result downloads use
// separate streams, so no copy delays the start of the next pass.
// Thread-safety: none; graph captures exclude the launches of other runners.
#ifndef PACE_MODEL_CUDA_DECODE_PASS_RUNNER_H_
#define PACE_MODEL_CUDA_DECODE_PASS_RUNNER_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "model/cuda/decode/batch_metadata.h"
#include "model/cuda/decode/cuda_ops.h"
#include "model/cuda/device_memory.h"
#include "model/decoder.h"
#include "model/network.h"

namespace pace::cuda {

// Decode passes as CUDA graphs, one for each shape. Captures keep apart from other threads' work
// (CaptureGate).
class PassGraphs {
 public:
  PassGraphs() = default;
  ~PassGraphs() { Drop(); }
  PassGraphs(const PassGraphs&) = delete;
  PassGraphs& operator=(const PassGraphs&) = delete;

  // Null where there is none.
  cudaGraphExec_t Find(const PassShape& shape) const {
    const auto found = graphs_.find(shape);
    return found == graphs_.end() ? nullptr : found->second;
  }
  // What `launch` launches becomes the graph of this shape; it returns the first error.
  // Put off, and no error, while others may load kernels.
  Status Capture(const PassShape& shape, cudaStream_t stream,
                 const std::function<Status()>& launch);
  void Drop();

 private:
  std::map<PassShape, cudaGraphExec_t> graphs_;
};

class PassRunner {
 public:
  // What all passes compute with; all of it outlives the runner.
  struct Setting {
    const ModelConfig& config;
    const NetworkWeights<CudaOps>& network;
    cudaStream_t stream = nullptr;
    Element element = Element::kFloat;
    BlockId spare_block = 0;
    char* cache = nullptr;
    int64_t layer_bytes = 0;
    char* states = nullptr;  // by cache slot; null: not cached
  };
  static Result<std::unique_ptr<PassRunner>> Create(const Setting& setting);
  ~PassRunner();

  // A pass that was started. Finish ends it, once.
  class Ticket {
    friend PassRunner;
    explicit Ticket(int slot) : slot_(slot) {}
    int slot_;
  };
  // Queues a pass. `sources`: its rows take their tokens from these results of the last
  // pass started; empty: from the pass. REQUIRES: fewer than two in flight; with sources,
  // IsDecodeOnly(pass), no more rows than the last pass, and IsSmall
  Result<Ticket> Start(const Pass& pass, std::span<const int32_t> sources = {});
  // Scores cached hidden states; `row` is a cache slot. REQUIRES: fewer than two in flight
  Result<Ticket> StartCached(std::span<const ScoreRequest> scores);
  // Samples, then scores, in the order of the requests.
  Result<PassResult> Finish(Ticket ticket);
  // Returns when the pass is done. REQUIRES: not finished
  Status Wait(Ticket ticket) const;

  // Few enough rows for a graph.
  static bool IsSmall(int64_t num_rows) { return PaddedRows(num_rows) > 0; }
  // Whether the results on the device are those of this pass.
  bool IsLast(Ticket ticket) const { return last_ == ticket.slot_; }

  Status Reserve(int64_t num_requests) { return ops_->Reserve(0, num_requests).status(); }
  CudaOps& ops() { return *ops_; }
  const BatchMetadata& metadata() const { return metadata_; }  // of the last pass started

 private:
  enum class Work {
    kDecode,  // a pass that may be a graph
    kPass,
    kCached,  // scores of cached hidden states
  };
  static constexpr int kMaxInFlight = BatchMetadata::kNumCopies;
  // A pass in flight.
  struct Slot {
    cudaEvent_t has_metadata = nullptr;
    cudaEvent_t is_computed = nullptr;
    cudaEvent_t has_results = nullptr;
    PinnedMemory results;
    size_t num_samples = 0;
    size_t num_scores = 0;
    bool is_taken = false;
    std::array<cudaEvent_t*, 3> events() { return {&has_metadata, &is_computed, &has_results}; }
  };

  explicit PassRunner(const Setting& setting);
  Result<Ticket> StartWork(const Pass& pass, int64_t padded_rows, std::span<const int32_t> sources,
                           Work work);
  void LaunchWork(Work work);
  Status Launch(Work work);
  Status LaunchPatiently(Work work);
  Status Excuse(const Status& status) const;
  Status SendMetadata(const Slot& slot) const;
  Status FetchResults(Slot& slot) const;

  const Setting setting_;
  BatchMetadata metadata_;
  std::unique_ptr<CudaOps> ops_;
  PassGraphs graphs_;
  cudaStream_t to_device_ = nullptr;
  cudaStream_t to_host_ = nullptr;
  std::array<Slot, kMaxInFlight> slots_;
  std::optional<int> last_;  // the slot whose results are on the device
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_PASS_RUNNER_H_
