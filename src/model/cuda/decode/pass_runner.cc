#include "model/cuda/decode/pass_runner.h"

#include <algorithm>
#include <chrono>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "core/check.h"
#include "model/cuda/capture_gate.h"

namespace pace::cuda {
namespace {

constexpr int kLaunchAttempts = 8;

}  // namespace

PassRunner::PassRunner(const Setting& setting)
    : setting_(setting),
      tables_(setting.spare_block, setting.config.num_heads / setting.config.num_kv_heads) {}

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
  for (Place& place : runner->places_) {
    for (cudaEvent_t* const event : place.events()) {
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
  for (Place& place : places_) {
    for (cudaEvent_t* const event : place.events()) {
      if (*event != nullptr) (void)cudaEventDestroy(*event);
    }
  }
  for (cudaStream_t stream : {to_device_, to_host_}) {
    if (stream != nullptr) (void)cudaStreamDestroy(stream);
  }
}

void PassRunner::LaunchWork(Work work) {
  ops_->Begin(tables_, setting_.cache, setting_.layer_bytes);
  if (work == Work::kKept) return ops_->AskKept(setting_.states, setting_.network.head);
  if (work == Work::kDecode) ops_->Advance();
  const CudaOps::Rows hidden = RunNetwork(setting_.network, *ops_);
  if (work == Work::kPass && setting_.states != nullptr) {
    ops_->KeepStates(hidden, setting_.states);
  }
  ops_->Ask(hidden, setting_.network.head);
}

Status PassRunner::Launch(Work work) {
  cudaGraphExec_t graph = work == Work::kDecode ? graphs_.Find(tables_.shape()) : nullptr;
  if (graph != nullptr) return ToStatus(cudaGraphLaunch(graph, setting_.stream), "graph");
  const std::shared_lock gate(CaptureGate());
  LaunchWork(work);
  return ops_->TakeStatus();
}

// An error that left the device as it was is no error: work may have met a capture
// in a library that knows nothing of the gate.
Status PassRunner::Excuse(const Status& status) const {
  if (status.ok()) return status;
  (void)cudaGetLastError();
  const cudaError_t error = cudaStreamSynchronize(setting_.stream);
  if (error == cudaSuccess) return Status::Ok();
  return Unavailable(status.message(), " (", cudaGetErrorString(error), ")");
}

// A pass that was queued in part may be queued again: it writes what it wrote, and
// what it goes on from lies elsewhere.
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

Status PassRunner::SendTables(const Place& place) const {
  PACE_RETURN_IF_ERROR(tables_.Upload(to_device_));
  PACE_RETURN_IF_ERROR(ToStatus(cudaEventRecord(place.has_tables, to_device_), "tables"));
  return ToStatus(cudaStreamWaitEvent(setting_.stream, place.has_tables), "tables");
}

Status PassRunner::FetchAnswers(Place& place) const {
  const size_t num_bytes = (place.num_samples + place.num_scores) * sizeof(Answer);
  if (std::cmp_less(place.answers.num_bytes(), num_bytes)) {
    PACE_ASSIGN_OR_RETURN(place.answers,
                          PinnedMemory::Allocate(static_cast<int64_t>(2 * num_bytes)));
  }
  PACE_RETURN_IF_ERROR(ToStatus(cudaEventRecord(place.is_computed, setting_.stream), "pass"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaStreamWaitEvent(to_host_, place.is_computed), "pass"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaMemcpyAsync(place.answers.As<Answer>(), ops_->answers(),
                                                num_bytes, cudaMemcpyDeviceToHost, to_host_),
                                "answers"));
  return ToStatus(cudaEventRecord(place.has_answers, to_host_), "answers");
}

Result<PassRunner::Ticket> PassRunner::StartWork(const Pass& pass, int64_t padded_rows,
                                                 std::span<const int32_t> sources, Work work) {
  const auto free = std::ranges::find(places_, false, &Place::is_taken);
  PACE_CHECK(free != places_.end(), "two passes are under way");
  const auto index = static_cast<int>(free - places_.begin());
  PACE_ASSIGN_OR_RETURN(const bool tables_moved, tables_.Build(pass, padded_rows, sources, index));
  const PassShape& shape = tables_.shape();
  PACE_ASSIGN_OR_RETURN(const bool rows_moved, ops_->Reserve(shape.num_rows, shape.num_questions));
  PACE_CHECK(sources.empty() || !rows_moved, "answers that a pass goes on from are gone");
  if (tables_moved || rows_moved) graphs_.Drop();
  last_ = -1;
  PACE_RETURN_IF_ERROR(SendTables(*free));
  PACE_RETURN_IF_ERROR(LaunchPatiently(work));
  free->num_samples = pass.samples.size();
  free->num_scores = pass.scores.size();
  PACE_RETURN_IF_ERROR(FetchAnswers(*free));
  free->is_taken = true;
  last_ = index;
  if (work == Work::kDecode && graphs_.Find(shape) == nullptr) {
    // What was launched once is loaded, and its products are planned: now it can be
    // captured. Where that fails, another pass of this shape will try again.
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

Result<PassRunner::Ticket> PassRunner::StartKept(std::span<const ScoreRequest> scores) {
  Pass pass;
  pass.scores.assign(scores.begin(), scores.end());
  return StartWork(pass, 0, {}, Work::kKept);
}

Status PassRunner::Wait(Ticket ticket) const {
  const Place& place = places_[static_cast<size_t>(ticket.place_)];
  PACE_CHECK(place.is_taken, "a pass that is under way");
  return ToStatus(cudaEventSynchronize(place.has_answers), "pass");
}

Result<PassResult> PassRunner::Finish(Ticket ticket) {
  const Status status = Wait(ticket);
  Place& place = places_[static_cast<size_t>(ticket.place_)];
  place.is_taken = false;
  PACE_RETURN_IF_ERROR(status);
  PassResult result;
  const std::span answers(place.answers.As<Answer>(), place.num_samples + place.num_scores);
  for (const Answer& answer : answers.first(place.num_samples)) {
    result.samples.push_back({.token = answer.token,
                              .logprob = answer.logprob,
                              .sampled_logprob = answer.sampled_logprob});
  }
  for (const Answer& answer : answers.subspan(place.num_samples)) {
    result.logprobs.push_back(answer.logprob);
  }
  return result;
}

}  // namespace pace::cuda
