// NcclGroup: one communicator of NCCL. No call waits longer than its deadline.
//
//   PACE_ASSIGN_OR_RETURN(const std::unique_ptr<NcclGroup> group,
//                         NcclGroup::Join(calls, id, {.rank = 0, .size = 2}));
//   PACE_RETURN_IF_ERROR(group->Broadcast(weights, weights, count, NcclType::kBfloat16, 0,
//   stream)); PACE_RETURN_IF_ERROR(group->Wait(stream));
//
// Every member makes the same calls in the same order. A collective returns when NCCL has queued it
// on the stream; Wait returns when the stream is idle. NCCL reports no error when a member is
// killed or stopped: only the deadline, or `lost`, ends a wait. The first error aborts the
// communicator, which ends its kernels; every later call returns that error at once.
// The GPU is the one that is current on the calling thread.
// Thread-safety: none; one thread at a time, which may change.
#ifndef PACE_NCCL_NCCL_GROUP_H_
#define PACE_NCCL_NCCL_GROUP_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/status.h"
#include "nccl/nccl_library.h"

namespace pace {

// A CUDA stream, so that this folder needs no CUDA.
class GpuStream {
 public:
  virtual ~GpuStream() = default;
  virtual void* handle() const = 0;  // cudaStream_t
  // Whether all work that was queued is done; never waits.
  virtual Result<bool> IsIdle() = 0;
};

class NcclGroup {
 public:
  struct Options {
    int64_t rank = 0;
    int64_t size = 2;
    std::chrono::milliseconds join{120'000};       // until all members are there
    std::chrono::milliseconds collective{60'000};  // of a collective and of Wait
    // Asked while a call waits; an error ends the wait with it. May be empty.
    std::function<Status()> lost = {};
  };

  // The name of a new group, which one member makes and tells the others.
  static Result<NcclId> MakeId(const NcclCalls& calls);
  // `calls` outlive it.
  static Result<std::unique_ptr<NcclGroup>> Join(const NcclCalls& calls, const NcclId& id,
                                                 const Options& options);
  // Ends what was queued, for which it waits for at most kFarewell; leaves the others to
  // themselves.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Sums; `from` may be `to`.
  Status AllReduce(const void* from, void* to, size_t count, NcclType type, GpuStream& stream);
  // `count` elements of the sum of size() * count.
  Status ReduceScatter(const void* from, void* to, size_t count, NcclType type, GpuStream& stream);
  // `count` elements of each member.
  Status AllGather(const void* from, void* to, size_t count, NcclType type, GpuStream& stream);
  Status Broadcast(const void* from, void* to, size_t count, NcclType type, int64_t root,
                   GpuStream& stream);
  Status Wait(GpuStream& stream);
  // All calls from now on end within `limit` together, instead of each within its own.
  void BeginDeadline(std::chrono::milliseconds limit);

  int64_t size() const { return options_.size; }
  const Status& failure() const { return failure_; }

  static constexpr std::chrono::milliseconds kFarewell{2000};
  // How long an abort is waited for; NCCL goes on with it after that.
  static constexpr std::chrono::milliseconds kAbort{500};

 private:
  using Time = std::chrono::steady_clock::time_point;
  NcclGroup(const NcclCalls& calls, const Options& options) : calls_(calls), options_(options) {}
  template <typename Call>
  Status Queue(const char* what, const Call& call);
  // Until NCCL has taken the call that returned `result`.
  Status Settle(const char* what, int result, Time deadline, std::chrono::milliseconds limit);
  // Ok: go on waiting.
  Status MayWait(const char* what, Time deadline, std::chrono::milliseconds limit) const;
  Status ErrorOf(const char* what, int result) const;
  Status Fail(const Status& status);
  void Abort();

  Time Deadline() const;

  const NcclCalls& calls_;
  const Options options_;
  std::chrono::milliseconds limit_ = options_.collective;
  std::optional<Time> until_ = {};  // of BeginDeadline
  // Where NCCL writes the communicator, also from a thread of its own after the join has failed.
  const std::shared_ptr<NcclComm> born_ = std::make_shared<NcclComm>(nullptr);
  NcclComm comm_ = nullptr;
  Status failure_ = {};
};

}  // namespace pace

#endif  // PACE_NCCL_NCCL_GROUP_H_
