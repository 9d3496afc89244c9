#include "model/cuda/decode/pass_runner.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "core/check.h"
#include "model/cuda/capture_gate.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/cuda/device_memory.h"

namespace pace::cuda {
namespace {

// Longer than other decoders' passes take to launch.
constexpr std::chrono::microseconds kCapturePatience(500);

constexpr int kLaunchAttempts = 8;

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

PassRunner::PassRunner(const Setting& setting)
    : setting_(setting),
      metadata_(setting.spare_block, setting.config.num_heads / setting.config.num_kv_heads) {}

Result<std::unique_ptr<PassRunner>> PassRunner::Create(const Setting& setting) {
  std::unique_ptr<PassRunner> runner(new PassRunner(setting));
  PACE_ASSIGN_OR_RETURN(runner->ops_,
                        CudaOps::Create(setting.config, setting.element, setting.stream));
  int least_urgent = 0;
  int most_urgent = 0;
  PACE_RETURN_IF_ERROR(
      ToStatus(cudaDeviceGetStreamPriorityRange(&least_urgent, &most_urgent), "stream"));
  for (cudaStream_t* const stream : {&runner->to_device_, &runner->to_host_}) {
    PACE_RETURN_IF_ERROR(ToStatus(
        cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, most_urgent), "stream"));
  }
  for (Slot& slot : runner->slots_) {
    for (cudaEvent_t* const event : slot.events()) {
      PACE_RETURN_IF_ERROR(
          ToStatus(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "event"));
    }
  }
  return runner;
}

PassRunner::~PassRunner() {
  for (cudaStream_t stream : {setting_.stream, to_device_, to_host_}) {
    if (stream != nullptr) (void)cudaStreamSynchronize(stream);
  }
  for (Slot& slot : slots_) {
    for (cudaEvent_t* const event : slot.events()) {
      if (*event != nullptr) (void)cudaEventDestroy(*event);
    }
  }
  for (cudaStream_t stream : {to_device_, to_host_}) {
    if (stream != nullptr) (void)cudaStreamDestroy(stream);
  }
}

void PassRunner::LaunchWork(Work work) {
  ops_->Begin(metadata_, setting_.cache, setting_.layer_bytes);
  if (work == Work::kCached) return ops_->RunCachedRequests(setting_.states, setting_.network.head);
  if (work == Work::kDecode) ops_->Advance();
  const CudaOps::Rows hidden = RunNetwork(setting_.network, *ops_);
  if (work == Work::kPass && setting_.states != nullptr) {
    ops_->CacheStates(hidden, setting_.states);
  }
  ops_->RunRequests(hidden, setting_.network.head);
}

Status PassRunner::Launch(Work work) {
  cudaGraphExec_t graph = work == Work::kDecode ? graphs_.Find(metadata_.shape()) : nullptr;
  if (graph != nullptr) return ToStatus(cudaGraphLaunch(graph, setting_.stream), "graph");
  const SharedCaptureGate gate;
  LaunchWork(work);
  return ops_->TakeStatus();
}

// Ignores errors that left the device usable: a launch can fail because another library was
// capturing a graph.
Status PassRunner::Excuse(const Status& status) const {
  if (status.ok()) return status;
  (void)cudaGetLastError();
  const cudaError_t error = cudaStreamSynchronize(setting_.stream);
  if (error == cudaSuccess) return Status::Ok();
  return Unavailable(status.message(), " (", cudaGetErrorString(error), ")");
}

// A partly queued pass may be queued again: it writes the same values and does not read what
// it writes.
Status PassRunner::LaunchPatiently(Work work) {
  Status status;
  for (int attempt = 0; attempt < kLaunchAttempts; ++attempt) {
    status = Launch(work);
    if (status.ok()) return status;
    PACE_RETURN_IF_ERROR(Excuse(status));
    std::this_thread::sleep_for(std::chrono::milliseconds(1 << attempt));
  }
  return status;
}

Status PassRunner::SendMetadata(const Slot& slot) const {
  PACE_RETURN_IF_ERROR(metadata_.Upload(to_device_));
  PACE_RETURN_IF_ERROR(ToStatus(cudaEventRecord(slot.has_metadata, to_device_), "batch metadata"));
  return ToStatus(cudaStreamWaitEvent(setting_.stream, slot.has_metadata), "batch metadata");
}

Status PassRunner::FetchResults(Slot& slot) const {
  const size_t num_bytes = (slot.num_samples + slot.num_scores) * sizeof(LogitsResult);
  if (std::cmp_less(slot.results.num_bytes(), num_bytes)) {
    PACE_ASSIGN_OR_RETURN(slot.results,
                          PinnedMemory::Allocate(static_cast<int64_t>(2 * num_bytes)));
  }
  PACE_RETURN_IF_ERROR(ToStatus(cudaEventRecord(slot.is_computed, setting_.stream), "pass"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaStreamWaitEvent(to_host_, slot.is_computed), "pass"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaMemcpyAsync(slot.results.As<LogitsResult>(), ops_->results(),
                                                num_bytes, cudaMemcpyDeviceToHost, to_host_),
                                "results"));
  return ToStatus(cudaEventRecord(slot.has_results, to_host_), "results");
}

Result<PassRunner::Ticket> PassRunner::StartWork(const Pass& pass, int64_t padded_rows,
                                                 std::span<const int32_t> sources, Work work) {
  const auto free = std::ranges::find(slots_, false, &Slot::is_taken);
  PACE_CHECK(free != slots_.end(), "two passes are in flight");
  const auto index = static_cast<int>(free - slots_.begin());
  PACE_ASSIGN_OR_RETURN(const bool metadata_moved,
                        metadata_.Build(pass, padded_rows, sources, index));
  const PassShape& shape = metadata_.shape();
  PACE_ASSIGN_OR_RETURN(const bool rows_moved, ops_->Reserve(shape.num_rows, shape.num_requests));
  PACE_CHECK(sources.empty() || !rows_moved, "results that a pass goes on from are gone");
  if (metadata_moved || rows_moved) graphs_.Drop();
  last_.reset();
  PACE_RETURN_IF_ERROR(SendMetadata(*free));
  PACE_RETURN_IF_ERROR(LaunchPatiently(work));
  free->num_samples = pass.samples.size();
  free->num_scores = pass.scores.size();
  PACE_RETURN_IF_ERROR(FetchResults(*free));
  free->is_taken = true;
  last_ = index;
  if (work == Work::kDecode && graphs_.Find(shape) == nullptr) {
    // The first launch loaded the kernels and planned the products, so the pass can now be
    // captured. After a failure the next pass of this shape tries again.
    const Status status = Excuse(graphs_.Capture(shape, setting_.stream, [this] {
      LaunchWork(Work::kDecode);
      return ops_->TakeStatus();
    }));
    if (!status.ok()) {
      free->is_taken = false;
      return status;
    }
  }
  return Ticket(index);
}

Result<PassRunner::Ticket> PassRunner::Start(const Pass& pass, std::span<const int32_t> sources) {
  const int64_t padded = IsDecodeOnly(pass) ? PaddedRows(std::ssize(pass.tokens)) : 0;
  PACE_CHECK(sources.empty() || padded > 0, "a decode pass");
  return StartWork(pass, padded, sources, padded > 0 ? Work::kDecode : Work::kPass);
}

Result<PassRunner::Ticket> PassRunner::StartCached(std::span<const ScoreRequest> scores) {
  Pass pass;
  pass.scores.assign(scores.begin(), scores.end());
  return StartWork(pass, 0, {}, Work::kCached);
}

Status PassRunner::Wait(Ticket ticket) const {
  const Slot& slot = slots_[static_cast<size_t>(ticket.slot_)];
  PACE_CHECK(slot.is_taken, "a pass in flight");
  return ToStatus(cudaEventSynchronize(slot.has_results), "pass");
}

Result<PassResult> PassRunner::Finish(Ticket ticket) {
  const Status status = Wait(ticket);
  Slot& slot = slots_[static_cast<size_t>(ticket.slot_)];
  slot.is_taken = false;
  PACE_RETURN_IF_ERROR(status);
  PassResult result;
  const std::span results(slot.results.As<LogitsResult>(), slot.num_samples + slot.num_scores);
  for (const LogitsResult& row_result : results.first(slot.num_samples)) {
    result.samples.push_back({.token = row_result.token,
                              .logprob = row_result.logprob,
                              .sampled_logprob = row_result.sampled_logprob});
  }
  for (const LogitsResult& row_result : results.subspan(slot.num_samples)) {
    result.logprobs.push_back(row_result.logprob);
  }
  return result;
}

}  // namespace pace::cuda
