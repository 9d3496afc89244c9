// Communicator: collectives over the tensors of several processes, the ranks.
//
// Every rank makes the same calls in the same order, with tensors of the same shape, dtype and
// kind of device. A call returns when this rank's result is there. Every rank gets the same bits
// of a sum. On CPUs the order of addition depends on the number of ranks and the shape alone; on
// GPUs it also depends on the algorithm that NCCL selects from the machine and its own variables,
// which is the same in every run on the same machines with the same NCCL.
//
//   Result<std::unique_ptr<Communicator>> ranks = ConnectRanks(environment, {.on_lost = lost});
//   PACE_RETURN_IF_ERROR(ConnectGpus(**ranks, {}));  // for tensors on GPUs: gpu_ranks.h
//   PACE_RETURN_IF_ERROR((*ranks)->AllReduce(gradient));
//
//   PendingCollective gather = (*ranks)->StartAllGather(own, all);
//   ...                                              // computes something else
//   PACE_RETURN_IF_ERROR(gather.Finish());           // now `all` is there
//
// A call fails when a rank is gone or when its deadline passes. The group is of no more use then:
// every later call returns the first error at once. No call throws.
// Tensors are contiguous; `all` has size() times the elements of `own`, and rank r's part stands at
// r. `own` may be this rank's part of `all`.
// Thread-safety: none; one thread at a time, which may change.
#ifndef PACE_RANKS_COMMUNICATOR_H_
#define PACE_RANKS_COMMUNICATOR_H_

#include <ATen/ATen.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "ranks/rank_environment.h"

namespace pace {

// The same for tensors on GPUs; requirements are checked by the caller.
class GpuCollectives {
 public:
  virtual ~GpuCollectives() = default;
  virtual Status Sum(const at::Tensor& tensor) = 0;
  virtual Status SumParts(const at::Tensor& all, const at::Tensor& own) = 0;
  virtual Status Collect(const at::Tensor& own, const at::Tensor& all) = 0;
  virtual Status Send(const at::Tensor& tensor, int64_t root) = 0;
};

class Communicator;

// A collective that makes progress while its caller computes. Its tensors must not be read, written
// or freed before Finish returns.
class [[nodiscard]] PendingCollective {
 public:
  // Returns when this rank's result is there. REQUIRES: the first call
  Status Finish();

 private:
  friend Communicator;
  using Completion = std::function<Status()>;
  PendingCollective(Communicator& ranks, const char* what, Completion completion)
      : ranks_(&ranks), what_(what), completion_(std::move(completion)) {}

  Communicator* ranks_;
  const char* what_;
  Completion completion_;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  // Ok until another rank is known to have ended or to be silent. Safe from any thread.
  virtual Status lost() const { return Status::Ok(); }
  // From now on for tensors on GPUs. Every rank calls it.
  void UseForGpus(std::unique_ptr<GpuCollectives> gpus);

  // The sum over all ranks, in place.
  Status AllReduce(const at::Tensor& tensor);
  // This rank's part of the sum of `all`.
  Status ReduceScatter(const at::Tensor& all, const at::Tensor& own);
  Status AllGather(const at::Tensor& own, const at::Tensor& all);
  // The same for callers that compute until they need the result. Several may be pending; they are
  // finished in the order of their starts. Tensors on GPUs: the collective is done at once.
  PendingCollective StartReduceScatter(const at::Tensor& all, const at::Tensor& own);
  PendingCollective StartAllGather(const at::Tensor& own, const at::Tensor& all);
  Status Broadcast(const at::Tensor& tensor, int64_t root);

  // Texts of any lengths, made of the above.
  Status BroadcastBytes(std::string& bytes, int64_t root);
  // As BroadcastBytes, for a rank that may have to wait long until the root has something to say.
  Status AwaitBytes(std::string& bytes, int64_t root);
  // Of every rank, in the order of ranks.
  Result<std::vector<std::string>> GatherBytes(const std::string& own);

  // The first error of a call.
  const Status& failure() const { return failure_; }

 protected:
  enum class Patience { kCollective, kIdle };
  using Completion = PendingCollective::Completion;
  static Completion Completed(const Status& status) {
    return [status] { return status; };
  }
  virtual Status Sum(const at::Tensor& tensor) = 0;
  // Both start; the completion waits. It holds what it needs of the tensors.
  virtual Completion SumParts(const at::Tensor& all, const at::Tensor& own) = 0;
  virtual Completion Collect(const at::Tensor& own, const at::Tensor& all) = 0;
  virtual Status Send(const at::Tensor& tensor, int64_t root, Patience patience) = 0;

 private:
  friend PendingCollective;
  template <typename Call>
  Status Checked(const char* what, const Call& call);
  Status SendBytes(std::string& bytes, int64_t root, Patience patience);
  // Who carries such a tensor; null: this class.
  GpuCollectives* CarrierOf(const at::Tensor& tensor) const;

  std::unique_ptr<GpuCollectives> gpus_;
  Status failure_ = {};
};

struct RankOptions {
  std::chrono::seconds join{120};         // until all ranks are there
  std::chrono::seconds collective{1800};  // of a call: the slowest rank's computation
  std::chrono::hours idle{24};            // of AwaitBytes
  // Ranks tell each other twice a second, on a thread of their own, that they are there.
  std::chrono::seconds silence{8};
  // Called at most once, from that thread, when a rank has ended or is silent, whatever the others
  // compute at that time.
  std::function<void(const Status&)> on_lost = {};
};

// Joins the other ranks, for tensors on CPUs (gloo). The destructor waits, for at most
// `collective`, until every rank destroys its own, unless a call has failed.
Result<std::unique_ptr<Communicator>> ConnectRanks(const RankEnvironment& environment,
                                                   const RankOptions& options);

}  // namespace pace

#endif  // PACE_RANKS_COMMUNICATOR_H_
