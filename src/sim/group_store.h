// GroupStore: the payload of groups from dispatch until they are trained on or dropped.
//
// A group has a slot, which is reused, with group_size consecutive responses in one flat
// table: no allocation per response.
//
// Thread-safety: none.
#ifndef PACE_SIM_GROUP_STORE_H_
#define PACE_SIM_GROUP_STORE_H_

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cluster/cost_model.h"
#include "core/clock.h"
#include "core/ids.h"
#include "record/step_metrics.h"
#include "sim/response.h"
#include "sim/workload.h"

namespace pace {

struct alignas(64) GroupSlot {
  GroupId group;
  PromptIndex prompt;
  double drift_factor = 1;
  size_t engine = 0;
  int64_t num_finished = 0;
  Seconds assembled{0};  // when the last member finished
  bool used = false;
};

class GroupStore {
 public:
  // `keep_versions`: segments are readable until the group is freed, not only when a response
  // finishes.
  GroupStore(const Workload& workload, int64_t group_size, bool keep_versions);

  // A slot with new responses to the prompt. `length` multiplies their numbers of tokens.
  // Unfinished responses that Keep saved for the prompt continue.
  size_t Start(GroupId group, PromptIndex prompt, size_t engine, double length);
  // Saves the unfinished responses for the next group of the same prompt.
  void Keep(size_t slot);
  void Free(size_t slot);

  // REQUIRES: the group is in the store.
  size_t Find(GroupId group) const { return slots_of_.at(group.value()); }
  GroupSlot& slot(size_t slot) { return slots_[slot]; }
  const GroupSlot& slot(size_t slot) const { return slots_[slot]; }
  size_t num_slots() const { return slots_.size(); }

  size_t SlotOf(ResponseIndex response) const {
    return static_cast<size_t>(response) / group_size_;
  }
  int64_t MemberOf(ResponseIndex response) const {
    return static_cast<int64_t>(static_cast<size_t>(response) % group_size_);
  }
  ResponseIndex IndexOf(size_t slot, int64_t member) const {
    return static_cast<ResponseIndex>(slot * group_size_ + static_cast<size_t>(member));
  }
  Response& response(ResponseIndex index) { return table_.responses[static_cast<size_t>(index)]; }
  // Of a response that has just finished, or of any with keep_versions.
  std::span<const Segment> segments(ResponseIndex index) const {
    const auto at = static_cast<size_t>(index);
    return table_.responses[at].has_runs ? table_.runs[at].segments() : table_.last_runs.segments();
  }
  std::span<const Response> members(size_t slot) const {
    return {&table_.responses[slot * group_size_], group_size_};
  }

  // Means over members. REQUIRES: the group has finished.
  PayloadStats Stats(size_t slot) const;
  // Policy tokens generated so far, up to each response's last stretch.
  int64_t NumTokens(size_t slot) const;
  // Whether all members have the same reward. REQUIRES: the group has finished.
  bool HasEqualRewards(size_t slot) const;
  // What training on the group computes. REQUIRES: the group has finished.
  PassSize TrainingPass(size_t slot) const;

  SimResponses& table() { return table_; }

 private:
  struct KeptResponse {
    Response response;
    std::vector<Segment> segments;
  };

  const Workload& workload_;
  const size_t group_size_;
  SimResponses table_;
  std::vector<GroupSlot> slots_;
  std::vector<size_t> free_;
  std::unordered_map<int64_t, size_t> slots_of_;
  std::unordered_map<int64_t, std::vector<KeptResponse>> kept_;  // by prompt
};

}  // namespace pace

#endif  // PACE_SIM_GROUP_STORE_H_
