#include "engines/remote_group.h"

#include "core/check.h"

namespace pace {

void RemoteMember::Append(const GenerateAnswer& answer,
                          const std::vector<PolicyVersion>& versions) {
  PolicyVersion last = sent_under;
  for (size_t i = 0; i < answer.tokens.size(); ++i) {
    // It stayed in the server through a sync.
    if (versions[i] > last && !response.tokens.empty()) ++response.num_interrupts;
    last = std::max(last, versions[i]);
    response.tokens.push_back({.id = answer.tokens[i],
                               .version = versions[i],
                               .logprob = answer.logprobs[i],
                               .sampled_logprob = answer.logprobs[i]});
  }
}

RemoteMember* RemoteGroups::Find(MemberId id) {
  const auto group = find(id.group);
  if (group == end()) return nullptr;
  const auto member = group->second.members.find(id.member);
  return member == group->second.members.end() ? nullptr : &member->second;
}

int64_t RemoteGroups::num_in_server() const {
  int64_t count = 0;
  for (const auto& [id, group] : *this) count += group.num_in_server();
  return count;
}

bool RemoteGroups::IsBound(PolicyVersion version) const {
  return std::any_of(begin(), end(), [version](const auto& entry) {
    const RemoteGroup& group = entry.second;
    return !group.cancelled && group.request.only_version == version;
  });
}

std::vector<GroupId> RemoteGroups::PassedBy(PolicyVersion version) const {
  std::vector<GroupId> passed;
  for (const auto& [id, group] : *this) {
    if (!group.cancelled && group.request.only_version.value_or(version) < version) {
      passed.push_back(id);
    }
  }
  return passed;
}

std::vector<GroupRequest> RemoteGroups::Unfinished() const {
  std::vector<GroupRequest> requests;
  for (const auto& [id, group] : *this) {
    if (!group.cancelled && !group.request.only_version) requests.push_back(group.Resumed());
  }
  return requests;
}

std::vector<std::string> RemoteGroups::AskToAbort(std::optional<GroupId> wanted) {
  std::vector<std::string> names;
  for (auto& [id, group] : *this) {
    if (wanted.has_value() && id != *wanted) continue;
    for (auto& [index, member] : group.members) {
      if (!member.in_server()) continue;
      member.abort_asked = true;
      names.push_back(member.sent.id);
    }
  }
  return names;
}

void RemoteGroups::Interrupt(bool scores, int64_t min_scored) {
  for (auto& [id, group] : *this) {
    for (auto& [index, member] : group.members) {
      // Requests that stayed in the server tell it with their answer.
      if (member.in_server() || member.response.tokens.empty()) continue;
      ++member.response.num_interrupts;
      if (scores && member.response.num_policy_tokens() >= min_scored) {
        member.response.awaits_score = true;
      }
    }
  }
}

std::vector<std::string> RemoteGroups::AskedToAbort() const {
  std::vector<std::string> names;
  for (const auto& [id, group] : *this) {
    for (const auto& [index, member] : group.members) {
      if (member.in_server() && member.abort_asked) names.push_back(member.sent.id);
    }
  }
  return names;
}

std::map<int64_t, MemberId> RemoteGroups::CheckedCalls() const {
  std::map<int64_t, MemberId> sent;
  for (const auto& [id, group] : *this) {
    PACE_CHECK(!group.members.empty() && group.request.group == id, "group ", id);
    for (const auto& [index, member] : group.members) {
      if (member.in_server()) sent.emplace(member.call, MemberId{id, index});
      PACE_CHECK(
          member.state != RemoteMember::State::kResting || member.response.paused.has_value(),
          "a response rests without a reason");
      PolicyVersion last(0);
      for (const TokenRecord& token : member.response.tokens) {
        PACE_CHECK(token.version >= last, "version ", token.version, " after ", last);
        last = token.version;
      }
    }
  }
  return sent;
}

}  // namespace pace
