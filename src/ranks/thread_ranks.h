// ThreadRanks: ranks that are threads of one process, for tests.
//
//   ThreadRanks ranks(3);
//   // in thread r:
//   Communicator& own = ranks.At(r);
//
// Sums add rank 0's tensor first, then rank 1's, and so on.
// Thread-safety: At(r) belongs to one thread. The object outlives the threads.
#ifndef PACE_RANKS_THREAD_RANKS_H_
#define PACE_RANKS_THREAD_RANKS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "ranks/communicator.h"

namespace pace {

class ThreadRanks {
 public:
  explicit ThreadRanks(int64_t size, std::chrono::seconds deadline = std::chrono::seconds(60));
  ~ThreadRanks();
  Communicator& At(int64_t rank);
  // Makes every call of every rank fail from now on, as if a rank had been killed.
  void Break();

 private:
  struct Meeting;
  class Member;
  std::shared_ptr<Meeting> meeting_;
  std::vector<std::unique_ptr<Member>> members_;
};

// Runs `body` once per rank, each on a thread of its own. A rank whose body has returned is gone
// for the others.
void RunThreadRanks(int64_t size, const std::function<void(Communicator&)>& body);

}  // namespace pace

#endif  // PACE_RANKS_THREAD_RANKS_H_
