// The unfinished responses of a remote worker, as RemoteCore keeps them: RemoteGroups holds the
// groups and answers questions about them; RemoteCore decides what becomes of them.
//
// Thread-safety: plain data.
#ifndef PACE_ENGINES_REMOTE_GROUP_H_
#define PACE_ENGINES_REMOTE_GROUP_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/version.h"
#include "engines/dialect.h"
#include "rollout/request.h"

namespace pace {

struct RemoteMember {
  enum class State {
    kWaiting,  // to be sent as soon as the server takes requests
    kSent,     // in the server
    kScoring,  // in the server, for the scores of its tokens alone
    kResting,  // met a stop rule and waits for the run
  };

  PartialResponse response = {};
  State state = State::kWaiting;
  // Of the request in the server.
  int64_t call = 0;
  GenerateCall sent = {};
  PolicyVersion sent_under{};  // the server's version then
  bool abort_asked = false;    // since then

  int64_t num_failures = 0;  // in a row

  bool in_server() const { return state == State::kSent || state == State::kScoring; }
  // The tokens of an answer, sampled under these versions.
  void Append(const GenerateAnswer& answer, const std::vector<PolicyVersion>& versions);
};

struct RemoteGroup {
  GroupRequest request = {};                     // without `members` and `resumed`
  std::map<int64_t, RemoteMember> members = {};  // unfinished, by their index
  bool cancelled = false;

  int64_t num_in_server() const {
    return std::count_if(members.begin(), members.end(),
                         [](const auto& entry) { return entry.second.in_server(); });
  }
  // As a request that resumes what is unfinished.
  GroupRequest Resumed() const {
    GroupRequest resumed = request;
    for (const auto& [index, member] : members) {
      resumed.members.push_back(index);
      resumed.resumed.push_back(member.response);
    }
    return resumed;
  }
};

// By id. Iterated in the order of ids.
class RemoteGroups : public std::map<GroupId, RemoteGroup> {
 public:
  // Null: no such response is unfinished.
  RemoteMember* Find(MemberId id);
  int64_t num_in_server() const;
  // A group is bound to this version.
  bool IsBound(PolicyVersion version) const;
  // Groups that are bound to a version before this one.
  std::vector<GroupId> PassedBy(PolicyVersion version) const;
  // What is to be resumed elsewhere.
  std::vector<GroupRequest> Unfinished() const;
  // Marks the requests of one group, or of all, as to be aborted, and returns their names.
  std::vector<std::string> AskToAbort(std::optional<GroupId> group);
  // New weights came between two requests of these responses. `scores`: prefixes of this many
  // tokens are to be scored under them.
  void Interrupt(bool scores, int64_t min_scored);
  // The names of those that were marked and are in the server still.
  std::vector<std::string> AskedToAbort() const;
  // By the call that each waits for. Aborts if states disagree.
  std::map<int64_t, MemberId> CheckedCalls() const;
};

}  // namespace pace

#endif  // PACE_ENGINES_REMOTE_GROUP_H_
