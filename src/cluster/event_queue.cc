#include "cluster/event_queue.h"

#include <algorithm>

#include "core/check.h"

namespace pace {

EventQueue::EventQueue(int64_t num_sources) : position_(static_cast<size_t>(num_sources), 0) {
  heap_.reserve(position_.size());
}

void EventQueue::Place(size_t index, const Entry& entry) {
  heap_[index] = entry;
  position_[static_cast<size_t>(entry.source)] = index + 1;
}

void EventQueue::SiftUp(size_t index) {
  const Entry entry = heap_[index];
  while (index > 0) {
    const size_t parent = (index - 1) / kChildren;
    if (!entry.Before(heap_[parent])) break;
    Place(index, heap_[parent]);
    index = parent;
  }
  Place(index, entry);
}

void EventQueue::SiftDown(size_t index) {
  const Entry entry = heap_[index];
  while (true) {
    const size_t first = index * kChildren + 1;
    if (first >= heap_.size()) break;
    const size_t end = std::min(first + kChildren, heap_.size());
    size_t best = first;
    for (size_t child = first + 1; child < end; ++child) {
      if (heap_[child].Before(heap_[best])) best = child;
    }
    if (!heap_[best].Before(entry)) break;
    Place(index, heap_[best]);
    index = best;
  }
  Place(index, entry);
}

void EventQueue::Set(int64_t source, Seconds time) {
  PACE_CHECK(source >= 0 && static_cast<size_t>(source) < position_.size(), "source ", source);
  size_t& position = position_[static_cast<size_t>(source)];
  if (position == 0) {
    heap_.push_back({time, source});
    position = heap_.size();
    SiftUp(heap_.size() - 1);
    return;
  }
  const size_t index = position - 1;
  const Seconds old = heap_[index].time;
  heap_[index].time = time;
  if (time < old) {
    SiftUp(index);
  } else {
    SiftDown(index);
  }
}

void EventQueue::Remove(int64_t source) {
  size_t& position = position_[static_cast<size_t>(source)];
  if (position == 0) return;
  const size_t index = position - 1;
  position = 0;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) return;
  Place(index, last);
  SiftUp(index);
  SiftDown(position_[static_cast<size_t>(last.source)] - 1);
}

}  // namespace pace
