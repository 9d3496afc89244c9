// PendingRewards: finished responses whose reward is being computed elsewhere.
//
//   PendingRewards pending([&](JudgedResponse judged) { mailbox.Put(std::move(judged)); });
//   pending.Ask(pool, request, response);   // the function is called on the pool's thread
//   pending.Settle();                       // its message was handled
//
// Replies that come after the destructor are dropped: the pool may outlive the driver.
// Thread-safety: one thread; the function is called on the pool's.
#ifndef PACE_RUNTIME_PENDING_REWARDS_H_
#define PACE_RUNTIME_PENDING_REWARDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "core/mutex.h"
#include "judge/reward_pool.h"
#include "rollout/request.h"

namespace pace {

struct JudgedResponse {
  FinishedResponse response;
  RewardRequest request;
  RewardReply reply;
};

class PendingRewards {
 public:
  using Done = std::function<void(JudgedResponse)>;

  explicit PendingRewards(Done done) {
    const MutexLock lock(door_->mutex);
    door_->done = std::move(done);
  }
  ~PendingRewards() {
    const MutexLock lock(door_->mutex);
    door_->done = nullptr;
  }
  PendingRewards(const PendingRewards&) = delete;
  PendingRewards& operator=(const PendingRewards&) = delete;

  void Ask(RewardPool& pool, RewardRequest request, FinishedResponse response) {
    ++count_;
    // The pool's callbacks are copied; the response is not.
    const auto judged = std::make_shared<JudgedResponse>(
        JudgedResponse{.response = std::move(response), .request = request, .reply = {}});
    pool.Ask(std::move(request), [door = door_, judged](const RewardReply& reply) {
      judged->reply = reply;
      const MutexLock lock(door->mutex);
      if (door->done) door->done(std::move(*judged));
    });
  }
  void Settle() { --count_; }
  int64_t count() const { return count_; }

 private:
  struct Door {
    Mutex mutex;
    Done done PACE_GUARDED_BY(mutex);  // empty after the destructor
  };

  const std::shared_ptr<Door> door_ = std::make_shared<Door>();
  int64_t count_ = 0;
};

}  // namespace pace

#endif  // PACE_RUNTIME_PENDING_REWARDS_H_
