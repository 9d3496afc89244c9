#include "rollout/response_table.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pace {

void ResponseTable::Add(GroupRequest request, std::vector<PartialResponse> resumed,
                        std::span<const MemberSlot> slots) {
  auto group = std::make_unique<LiveGroup>();
  group->request = std::move(request);
  group->arrival = next_arrival_++;
  group->slots.assign(slots.begin(), slots.end());
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto at = static_cast<size_t>(slots[i]);
    const int64_t member = group->request.member(static_cast<int64_t>(i));
    if (responses_.size() <= at) responses_.resize(at + 1);
    responses_[at] = std::make_unique<LiveResponse>(
        LiveResponse{.group = group.get(),
                     .member = member,
                     .response = std::move(resumed[i]),
                     .matcher = StopMatcher(&group->request.stop, tokenizer_, member),
                     .scorer = {}});
    LiveResponse& added = *responses_[at];
    for (const TokenRecord& token : added.response.tokens) {
      added.matcher.Skip(token.id);
      if (token.is_tool) added.matcher.BeginTurn();
    }
  }
  const GroupId id = group->request.group;
  const bool is_new = groups_.emplace(id, std::move(group)).second;
  PACE_CHECK(is_new, "group ", id, " is there already");
}

void ResponseTable::Remove(MemberSlot slot) {
  LiveGroup& group = *At(slot).group;
  responses_[static_cast<size_t>(slot)].reset();
  std::erase(group.slots, slot);
  if (group.slots.empty()) groups_.erase(GroupId(group.request.group));
}

const LiveGroup* ResponseTable::Find(GroupId group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : found->second.get();
}

std::optional<MemberSlot> ResponseTable::Find(MemberId id) const {
  const LiveGroup* group = Find(id.group);
  if (group == nullptr) return std::nullopt;
  for (const MemberSlot slot : group->slots) {
    if (At(slot).member == id.member) return slot;
  }
  return std::nullopt;
}

GroupRequest ResponseTable::Resumable(const LiveGroup& group,
                                      std::span<const MemberSlot> slots) const {
  GroupRequest request = group.request;
  request.members.clear();
  for (const MemberSlot slot : slots) {
    request.members.push_back(At(slot).member);
    request.resumed.push_back(At(slot).response);
  }
  return request;
}

std::vector<GroupRequest> ResponseTable::Unfinished() const {
  std::vector<const LiveGroup*> groups;
  for (const auto& [id, group] : groups_) groups.push_back(group.get());
  std::sort(groups.begin(), groups.end(),
            [](const auto* a, const auto* b) { return a->arrival < b->arrival; });
  std::vector<GroupRequest> requests;
  requests.reserve(groups.size());
  for (const LiveGroup* group : groups) requests.push_back(Resumable(*group, group->slots));
  return requests;
}

int64_t ResponseTable::CheckInvariants() const {
  int64_t num_responses = 0;
  for (const auto& [id, group] : groups_) {
    PACE_CHECK(id == group->request.group && !group->slots.empty(), "group ", id, " is empty");
    for (const MemberSlot slot : group->slots) {
      ++num_responses;
      const LiveResponse& response = At(slot);
      PACE_CHECK(response.group == group.get(), "slot ", slot, " is of another group");
      PACE_CHECK(response.scorer.wanted() == response.response.awaits_score, "slot ", slot,
                 " does not know whether it awaits a score");
    }
  }
  const auto num_slots = std::count_if(responses_.begin(), responses_.end(),
                                       [](const auto& response) { return response != nullptr; });
  PACE_CHECK(num_slots == num_responses, num_slots, " slots for ", num_responses, " responses");
  return num_responses;
}

}  // namespace pace
