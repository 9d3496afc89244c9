#include "ranks/thread_ranks.h"

#include <thread>
#include <utility>

#include "core/check.h"
#include "core/mutex.h"

namespace pace {

// All ranks bring a tensor; the last one computes for all of them.
struct ThreadRanks::Meeting {
  Meeting(int64_t given_size, std::chrono::seconds given_deadline)
      : size(given_size), deadline(given_deadline), brought(static_cast<size_t>(given_size)) {}

  const int64_t size;
  const std::chrono::seconds deadline;
  Mutex mutex;
  CondVar changed;
  int64_t round PACE_GUARDED_BY(mutex) = 0;
  int64_t num_arrived PACE_GUARDED_BY(mutex) = 0;
  bool broken PACE_GUARDED_BY(mutex) = false;
  std::vector<at::Tensor> brought PACE_GUARDED_BY(mutex);
  std::vector<at::Tensor> all PACE_GUARDED_BY(mutex);  // of the last round, as they were brought

  // The tensors of all ranks, as copies.
  Result<std::vector<at::Tensor>> Exchange(int64_t rank, const at::Tensor& tensor) {
    const auto until = std::chrono::steady_clock::now() + deadline;
    const MutexLock lock(mutex);
    const int64_t own_round = round;
    if (broken) return Unavailable("another rank has ended (call ", own_round, ")");
    brought[static_cast<size_t>(rank)] = tensor.clone();
    if (++num_arrived == size) {
      all = std::exchange(brought, std::vector<at::Tensor>(static_cast<size_t>(size)));
      num_arrived = 0;
      ++round;
      changed.NotifyAll();
    }
    while (round == own_round && !broken) {
      if (!changed.WaitUntil(mutex, until) && round == own_round) {
        broken = true;
        changed.NotifyAll();
      }
    }
    if (round == own_round)
      return Unavailable("another rank ended or is silent (call ", own_round, ")");
    return all;
  }
};

class ThreadRanks::Member final : public Communicator {
 public:
  Member(std::shared_ptr<Meeting> meeting, int64_t rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  int64_t rank() const override { return rank_; }
  int64_t size() const override { return meeting_->size; }

 protected:
  Status Sum(const at::Tensor& tensor) override {
    PACE_ASSIGN_OR_RETURN(const at::Tensor sum, SumOf(tensor));
    tensor.copy_(sum);
    return Status::Ok();
  }
  Completion SumParts(const at::Tensor& all, const at::Tensor& own) override {
    const Result<at::Tensor> sum = SumOf(all);
    if (sum.ok()) own.copy_(sum->narrow(0, rank_ * own.numel(), own.numel()));
    return Completed(sum.status());
  }
  Completion Collect(const at::Tensor& own, const at::Tensor& all) override {
    const Result<std::vector<at::Tensor>> parts = meeting_->Exchange(rank_, own);
    for (int64_t i = 0; parts.ok() && i < size(); ++i) {
      all.narrow(0, i * own.numel(), own.numel()).copy_((*parts)[static_cast<size_t>(i)]);
    }
    return Completed(parts.status());
  }
  Status Send(const at::Tensor& tensor, int64_t root, Patience /*patience*/) override {
    PACE_ASSIGN_OR_RETURN(
        const std::vector<at::Tensor> parts,
        meeting_->Exchange(rank_, rank_ == root ? tensor : at::empty({0}, tensor.options())));
    tensor.copy_(parts[static_cast<size_t>(root)]);
    return Status::Ok();
  }

 private:
  Result<at::Tensor> SumOf(const at::Tensor& tensor) {
    PACE_ASSIGN_OR_RETURN(const std::vector<at::Tensor> parts, meeting_->Exchange(rank_, tensor));
    at::Tensor sum = parts.front().clone();
    for (size_t i = 1; i < parts.size(); ++i) sum.add_(parts[i]);
    return sum;
  }

  const std::shared_ptr<Meeting> meeting_;
  const int64_t rank_;
};

ThreadRanks::ThreadRanks(int64_t size, std::chrono::seconds deadline)
    : meeting_(std::make_shared<Meeting>(size, deadline)) {
  PACE_CHECK(size > 0, "size = ", size);
  for (int64_t rank = 0; rank < size; ++rank) {
    members_.push_back(std::make_unique<Member>(meeting_, rank));
  }
}

ThreadRanks::~ThreadRanks() = default;

Communicator& ThreadRanks::At(int64_t rank) {
  return *members_[static_cast<size_t>(rank)];
}

void ThreadRanks::Break() {
  const MutexLock lock(meeting_->mutex);
  meeting_->broken = true;
  meeting_->changed.NotifyAll();
}

void RunThreadRanks(int64_t size, const std::function<void(Communicator&)>& body) {
  ThreadRanks ranks(size);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      body(ranks.At(rank));
      ranks.Break();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace pace
