// ResponseTable: the unfinished responses of an engine, by scheduler slot, by
// group and by name.
// Thread-safety: none.
#ifndef PACE_ROLLOUT_RESPONSE_TABLE_H_
#define PACE_ROLLOUT_RESPONSE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/ids.h"
#include "core/token_id.h"
#include "rollout/prefix_scorer.h"
#include "rollout/request.h"
#include "rollout/scheduler.h"
#include "rollout/stop_matcher.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

struct LiveGroup {
  GroupRequest request;  // as submitted, without `resumed`
  int64_t arrival = 0;
  std::vector<MemberSlot> slots;  // of unfinished members, in order
};

struct LiveResponse {
  LiveGroup* group;
  int64_t member;
  PartialResponse response;
  StopMatcher matcher;
  PrefixScorer scorer;

  MemberId id() const { return {group->request.group, member}; }
  int64_t num_prompt_tokens() const {
    return static_cast<int64_t>(group->request.prompt_tokens.size());
  }
  int64_t num_tokens() const { return static_cast<int64_t>(response.tokens.size()); }
  // Of the sequence: the prompt, then the response.
  TokenId TokenAt(int64_t position) const {
    const int64_t num_prompt = num_prompt_tokens();
    return position < num_prompt ? group->request.prompt_tokens[static_cast<size_t>(position)]
                                 : response.tokens[static_cast<size_t>(position - num_prompt)].id;
  }
};

class ResponseTable {
 public:
  // The tokenizer, null or not, outlives the table.
  explicit ResponseTable(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // REQUIRES: a slot and a resumed response (possibly empty) for each member of the request; a
  // new group
  void Add(GroupRequest request, std::vector<PartialResponse> resumed,
           std::span<const MemberSlot> slots);
  // REQUIRES: in the table
  void Remove(MemberSlot slot);

  LiveResponse& At(MemberSlot slot) { return *responses_[static_cast<size_t>(slot)]; }
  const LiveResponse& At(MemberSlot slot) const { return *responses_[static_cast<size_t>(slot)]; }
  // By slot; null where there is none.
  std::span<const std::unique_ptr<LiveResponse>> responses() const { return responses_; }

  const LiveGroup* Find(GroupId group) const;
  std::optional<MemberSlot> Find(MemberId id) const;

  // A request that resumes these members of a group.
  GroupRequest Resumable(const LiveGroup& group, std::span<const MemberSlot> slots) const;
  // The same for everything, in order of arrival.
  std::vector<GroupRequest> Unfinished() const;

  // Aborts if the views disagree; returns the number of responses.
  int64_t CheckInvariants() const;

 private:
  const Tokenizer* tokenizer_;
  std::unordered_map<GroupId, std::unique_ptr<LiveGroup>> groups_;
  std::vector<std::unique_ptr<LiveResponse>> responses_;
  int64_t next_arrival_ = 0;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_RESPONSE_TABLE_H_
