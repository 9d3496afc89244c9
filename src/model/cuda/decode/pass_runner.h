// PassRunner queues passes on a stream and gives their answers back.
//
// Two may be under way at once, so that one can be queued behind another whose
// answers are still to come: Start returns at once, Finish waits. Passes run in the
// order of their starts. Decode passes run as graphs (pass_graphs.h). Tables come and
// answers go on streams of their own, so that a pass can begin when the one before
// ends, without a copy between them.
// Thread-safety: none; passes of several runners keep apart from captures.
#ifndef PACE_MODEL_CUDA_DECODE_PASS_RUNNER_H_
#define PACE_MODEL_CUDA_DECODE_PASS_RUNNER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "model/cuda/decode/batch_metadata.h"
#include "model/cuda/decode/cuda_ops.h"
#include "model/cuda/decode/pass_graphs.h"
#include "model/cuda/device_memory.h"
#include "model/decoder.h"
#include "model/network.h"

namespace pace::cuda {

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
    char* states = nullptr;  // by place in the cache; null: not kept
  };
  static Result<std::unique_ptr<PassRunner>> Create(const Setting& setting);
  ~PassRunner();

  // A pass that was started. Finish ends it, once.
  class Ticket {
    friend PassRunner;
    explicit Ticket(int place) : place_(place) {}
    int place_;
  };
  // Queues a pass. `sources`: its rows take their tokens from these answers of the last
  // pass started; empty: from the pass. REQUIRES: less than two under way; with sources,
  // IsDecodeOnly(pass), no more rows than the last had, and IsSmall
  Result<Ticket> Start(const Pass& pass, std::span<const int32_t> sources = {});
  // Asks about kept states instead; `row` is a place. REQUIRES: less than two under way
  Result<Ticket> StartKept(std::span<const ScoreRequest> scores);
  // Samples, then scores, in the order asked.
  Result<PassResult> Finish(Ticket ticket);
  // Returns when the pass is done. REQUIRES: not finished
  Status Wait(Ticket ticket) const;

  // Few enough rows for a graph.
  static bool IsSmall(int64_t num_rows) { return PaddedRows(num_rows) > 0; }
  // The answers of this pass are the last on the device.
  bool IsLast(Ticket ticket) const { return last_ == ticket.place_; }

  Status Reserve(int64_t num_questions) { return ops_->Reserve(0, num_questions).status(); }
  CudaOps& ops() { return *ops_; }
  const BatchMetadata& tables() const { return tables_; }  // of the last pass started

 private:
  enum class Work {
    kDecode,  // a pass that may be a graph
    kPass,
    kKept,  // scores from kept states
  };
  static constexpr int kMostPlaces = BatchMetadata::kNumCopies;
  // A pass under way.
  struct Place {
    cudaEvent_t has_tables = nullptr;
    cudaEvent_t is_computed = nullptr;
    cudaEvent_t has_answers = nullptr;
    PinnedMemory answers;
    size_t num_samples = 0;
    size_t num_scores = 0;
    bool is_taken = false;
    std::array<cudaEvent_t*, 3> events() { return {&has_tables, &is_computed, &has_answers}; }
  };

  explicit PassRunner(const Setting& setting);
  Result<Ticket> StartWork(const Pass& pass, int64_t padded_rows, std::span<const int32_t> sources,
                           Work work);
  void LaunchWork(Work work);
  Status Launch(Work work);
  Status LaunchPatiently(Work work);
  Status Excuse(const Status& status) const;
  Status SendTables(const Place& place) const;
  Status FetchAnswers(Place& place) const;

  const Setting setting_;
  BatchMetadata tables_;
  std::unique_ptr<CudaOps> ops_;
  PassGraphs graphs_;
  cudaStream_t to_device_ = nullptr;
  cudaStream_t to_host_ = nullptr;
  std::array<Place, kMostPlaces> places_;
  int last_ = -1;  // whose answers are on the device
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_PASS_RUNNER_H_
