// EventQueue: the source that acts next under virtual time.
//
// A fixed number of sources, each with at most one time at which it acts. The earliest is
// first; of equal times, the smaller source. So the order of events does not depend on the
// order of insertion.
//
//   queue.Set(engine, time);
//   while (!queue.empty()) queue.Set(queue.source(), Act(queue.source(), queue.time()));
//
// Set and Remove take O(log sources). Thread-safety: none.
#ifndef PACE_CLUSTER_EVENT_QUEUE_H_
#define PACE_CLUSTER_EVENT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/clock.h"

namespace pace {

class EventQueue {
 public:
  explicit EventQueue(int64_t num_sources);

  // Enters the source, or moves it.
  void Set(int64_t source, Seconds time);
  // Removes the source, if it is in the queue.
  void Remove(int64_t source);

  bool empty() const { return heap_.empty(); }
  // Of the next event. REQUIRES: !empty()
  Seconds time() const { return heap_.front().time; }
  int64_t source() const { return heap_.front().source; }

 private:
  static constexpr size_t kChildren = 4;  // shallower than with two
  struct Entry {
    Seconds time;
    int64_t source;
    bool Before(const Entry& other) const {
      return time < other.time || (time == other.time && source < other.source);
    }
  };
  void Place(size_t index, const Entry& entry);
  void SiftUp(size_t index);
  void SiftDown(size_t index);

  std::vector<Entry> heap_;
  // Index in heap_ plus one; 0 = not in it.
  std::vector<size_t> position_;
};

}  // namespace pace

#endif  // PACE_CLUSTER_EVENT_QUEUE_H_
