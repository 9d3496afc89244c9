#include "nccl/nccl_group.h"

#include <algorithm>
#include <future>
#include <string>
#include <thread>

namespace pace {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Polls closely at first: a collective takes microseconds to seconds.
class Pause {
 public:
  void Next() {
    if (++num_polls_ < kSpins) {
      std::this_thread::yield();
      return;
    }
    std::this_thread::sleep_for(length_);
    length_ = std::min(2 * length_, kLongest);
  }

 private:
  static constexpr int kSpins = 2000;
  static constexpr microseconds kLongest{1000};
  int num_polls_ = 0;
  microseconds length_{20};
};

std::string Seconds(milliseconds time) {
  const auto count = time.count();
  return count % 1000 == 0 ? Concat(count / 1000, " s") : Concat(count, " ms");
}

}  // namespace

Result<NcclId> NcclGroup::MakeId(const NcclCalls& calls) {
  NcclId id;
  const int result = calls.get_unique_id(&id);
  if (result == kNcclSuccess) return id;
  return Unavailable("NCCL: unique id: ", calls.get_error_string(result));
}

Result<std::unique_ptr<NcclGroup>> NcclGroup::Join(const NcclCalls& calls, const NcclId& id,
                                                   const Options& options) {
  std::unique_ptr<NcclGroup> group(new NcclGroup(calls, options));
  NcclConfig config;
  const Time deadline = Clock::now() + options.join;
  const int result = calls.comm_init_rank_config(group->born_.get(), static_cast<int>(options.size),
                                                 id, static_cast<int>(options.rank), &config);
  group->comm_ = __atomic_load_n(group->born_.get(), __ATOMIC_ACQUIRE);
  PACE_RETURN_IF_ERROR(group->Settle("join", result, deadline, options.join));
  return group;
}

// Once what was queued has left, the communicator is aborted, not destroyed: NCCL's destruction
// waits, in a thread of its own, until every other member has destroyed its own.
NcclGroup::~NcclGroup() {
  if (comm_ == nullptr) return;
  const Time deadline = Clock::now() + kFarewell;
  static_cast<void>(Settle("leave", calls_.comm_finalize(comm_), deadline, kFarewell));
  Abort();
}

Status NcclGroup::ErrorOf(const char* what, int result) const {
  std::string text = calls_.get_error_string(result);
  const char* const detail = comm_ == nullptr ? nullptr : calls_.get_last_error(comm_);
  if (detail != nullptr && *detail != '\0') {
    std::string line = detail;
    text += Concat(" (", line.substr(0, line.find('\n')), ")");
  }
  return Unavailable("NCCL ", what, ", member ", options_.rank, " of ", options_.size, ": ", text);
}

Status NcclGroup::MayWait(const char* what, Time deadline, milliseconds limit) const {
  if (options_.lost) PACE_RETURN_IF_ERROR(options_.lost());
  if (Clock::now() < deadline) return Status::Ok();
  return Unavailable("NCCL ", what, ", member ", options_.rank, " of ", options_.size,
                     ": not done after ", Seconds(limit));
}

Status NcclGroup::Settle(const char* what, int result, Time deadline, milliseconds limit) {
  Pause pause;
  while (result == kNcclInProgress) {
    int state = kNcclInProgress;
    const int asked = calls_.comm_get_async_error(comm_, &state);
    if (asked != kNcclSuccess) return Fail(ErrorOf(what, asked));
    result = state;
    if (result != kNcclInProgress) break;
    const Status status = MayWait(what, deadline, limit);
    if (!status.ok()) return Fail(status);
    pause.Next();
  }
  return result == kNcclSuccess ? Status::Ok() : Fail(ErrorOf(what, result));
}

Status NcclGroup::Fail(const Status& status) {
  if (failure_.ok()) failure_ = status;
  Abort();
  return failure_;
}

// Aborting can itself wait for work on the GPU, so it has a thread of its own.
void NcclGroup::Abort() {
  if (comm_ == nullptr) return;
  std::packaged_task<int()> abort(
      [call = calls_.comm_abort, comm = comm_, born = born_] { return call(comm); });
  std::future<int> done = abort.get_future();
  comm_ = nullptr;
  std::thread(std::move(abort)).detach();
  static_cast<void>(done.wait_for(kAbort));
}

void NcclGroup::BeginDeadline(milliseconds limit) {
  limit_ = limit;
  until_ = Clock::now() + limit;
}

NcclGroup::Time NcclGroup::Deadline() const {
  return until_.value_or(Clock::now() + limit_);
}

template <typename Call>
Status NcclGroup::Queue(const char* what, const Call& call) {
  PACE_RETURN_IF_ERROR(failure_);
  const Time deadline = Deadline();
  return Settle(what, call(), deadline, limit_);
}

Status NcclGroup::AllReduce(const void* from, void* to, size_t count, NcclType type,
                            GpuStream& stream) {
  return Queue("all-reduce", [&] {
    return calls_.all_reduce(from, to, count, static_cast<int>(type), kNcclSum, comm_,
                             stream.handle());
  });
}

Status NcclGroup::ReduceScatter(const void* from, void* to, size_t count, NcclType type,
                                GpuStream& stream) {
  return Queue("reduce-scatter", [&] {
    return calls_.reduce_scatter(from, to, count, static_cast<int>(type), kNcclSum, comm_,
                                 stream.handle());
  });
}

Status NcclGroup::AllGather(const void* from, void* to, size_t count, NcclType type,
                            GpuStream& stream) {
  return Queue("all-gather", [&] {
    return calls_.all_gather(from, to, count, static_cast<int>(type), comm_, stream.handle());
  });
}

Status NcclGroup::Broadcast(const void* from, void* to, size_t count, NcclType type, int64_t root,
                            GpuStream& stream) {
  return Queue("broadcast", [&] {
    return calls_.broadcast(from, to, count, static_cast<int>(type), static_cast<int>(root), comm_,
                            stream.handle());
  });
}

Status NcclGroup::Wait(GpuStream& stream) {
  PACE_RETURN_IF_ERROR(failure_);
  const Time deadline = Deadline();
  Pause pause;
  for (;;) {
    const Result<bool> idle = stream.IsIdle();
    if (!idle.ok()) return Fail(idle.status());
    // Asked also of an idle stream: kernels end early after an error.
    int state = kNcclSuccess;
    const int asked = calls_.comm_get_async_error(comm_, &state);
    if (asked != kNcclSuccess) return Fail(ErrorOf("wait", asked));
    if (state != kNcclSuccess && state != kNcclInProgress) return Fail(ErrorOf("wait", state));
    if (*idle) return Status::Ok();
    const Status status = MayWait("wait", deadline, limit_);
    if (!status.ok()) return Fail(status);
    pause.Next();
  }
}

}  // namespace pace
