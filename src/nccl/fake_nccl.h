// FakeNccl: a table of NCCL's functions that follow orders, and a stream, for tests.
//
//   FakeNccl fake;
//   fake.state().join = kNcclInProgress;  // the others never come
//   const auto group = NcclGroup::Join(fake.calls(), {}, {.join = std::chrono::milliseconds(50)});
//
// One at a time: NCCL's functions have no argument for a state.
#ifndef PACE_NCCL_FAKE_NCCL_H_
#define PACE_NCCL_FAKE_NCCL_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/check.h"
#include "nccl/nccl_group.h"
#include "nccl/nccl_library.h"

namespace pace {

class FakeNccl {
 public:
  struct Sent {
    std::string what = {};
    const void* from = nullptr;
    size_t count = 0;
    int type = 0;
    int root = 0;
    std::string bytes = {};  // of broadcasts, as they were when it was queued
  };
  struct State {
    int join = kNcclSuccess;     // what making a group returns, first and then
    int queue = kNcclSuccess;    // what a collective returns
    int settles = kNcclSuccess;  // what a call in progress ends with
    int async = kNcclSuccess;    // of an idle communicator
    int polls_until_settled = 3;
    bool finishes = true;  // the others leave too
    std::atomic<bool> abort_blocks = false;
    int num_finalized = 0;
    std::atomic<int> num_aborts = 0;
    std::atomic<int> num_aborted = 0;  // that returned
    NcclConfig config = {};
    std::vector<Sent> sent = {};
    int pending = 0;  // polls
  };

  FakeNccl() {
    PACE_CHECK(Current() == nullptr, "two of them");
    Current() = &state_;
  }
  ~FakeNccl() {
    state_.abort_blocks = false;
    // Aborts have threads of their own.
    while (state_.num_aborted < state_.num_aborts) std::this_thread::yield();
    Current() = nullptr;
  }
  State& state() { return state_; }

  const NcclCalls& calls() const {
    static const NcclCalls table = Table();
    return table;
  }

 private:
  static State*& Current() {
    static State* current = nullptr;
    return current;
  }
  static int Begin(int result) {
    Current()->pending = Current()->polls_until_settled;
    return result;
  }
  static int Queue(Sent sent) {
    Current()->sent.push_back(std::move(sent));
    return Begin(Current()->queue);
  }

  static NcclCalls Table() {
    NcclCalls calls;
    calls.get_version = [](int* version) {
      *version = 23007;
      return kNcclSuccess;
    };
    calls.get_unique_id = [](NcclId* id) {
      id->bytes.fill('i');
      return kNcclSuccess;
    };
    calls.comm_init_rank_config = [](NcclComm* comm, int /*size*/, NcclId /*id*/, int /*rank*/,
                                     NcclConfig* config) {
      *comm = Current();
      Current()->config = *config;
      return Begin(Current()->join);
    };
    calls.comm_get_async_error = [](NcclComm /*comm*/, int* error) {
      State& state = *Current();
      const bool is_over = state.pending == 1;
      state.pending = std::max(0, state.pending - 1);
      if (is_over && state.settles != kNcclInProgress) {
        state.join = state.queue = kNcclSuccess;
        *error = state.settles;
      } else {
        *error = state.join == kNcclInProgress || state.queue == kNcclInProgress ? kNcclInProgress
                                                                                 : state.async;
      }
      return kNcclSuccess;
    };
    calls.comm_finalize = [](NcclComm /*comm*/) {
      ++Current()->num_finalized;
      if (Current()->finishes) return kNcclSuccess;
      Current()->settles = Current()->queue = kNcclInProgress;
      return kNcclInProgress;
    };
    calls.comm_abort = [](NcclComm comm) {
      auto* const state = static_cast<State*>(comm);
      ++state->num_aborts;
      while (state->abort_blocks) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++state->num_aborted;
      return kNcclSuccess;
    };
    calls.get_error_string = [](int result) {
      return result == 6 ? "remote process exited or there was a network error" : "some error";
    };
    calls.get_last_error = [](NcclComm /*comm*/) { return "socketProgress: closed\nmore"; };
    calls.all_reduce = [](const void* from, void* /*to*/, size_t count, int type, int /*op*/,
                          NcclComm /*comm*/, void* /*stream*/) {
      return Queue({"all-reduce", from, count, type, 0, ""});
    };
    calls.reduce_scatter = [](const void* from, void* /*to*/, size_t count, int type, int /*op*/,
                              NcclComm /*comm*/, void* /*stream*/) {
      return Queue({"reduce-scatter", from, count, type, 0, ""});
    };
    calls.all_gather = [](const void* from, void* /*to*/, size_t count, int type, NcclComm /*comm*/,
                          void* /*stream*/) {
      return Queue({"all-gather", from, count, type, 0, ""});
    };
    calls.broadcast = [](const void* from, void* /*to*/, size_t count, int type, int root,
                         NcclComm /*comm*/, void* /*stream*/) {
      const size_t width = type == 1 ? 1 : type == 7 ? 4 : 2;
      return Queue({"broadcast", from, count, type, root,
                    std::string(static_cast<const char*>(from), count * width)});
    };
    return calls;
  }

  State state_;
};

// Idle after this many questions.
class FakeStream final : public GpuStream {
 public:
  explicit FakeStream(int num_busy = 2) : num_busy_(num_busy) {}
  void* handle() const override { return nullptr; }
  Result<bool> IsIdle() override {
    if (broken_) return Unavailable("CUDA: an illegal memory access was encountered");
    return num_busy_-- <= 0;
  }
  void Break() { broken_ = true; }

 private:
  int num_busy_;
  bool broken_ = false;
};

}  // namespace pace

#endif  // PACE_NCCL_FAKE_NCCL_H_
