// The unfinished responses of a remote worker, as RemoteCore keeps them.
//
// Thread-safety: plain data.
#ifndef PACE_ENGINES_REMOTE_GROUP_H_
#define PACE_ENGINES_REMOTE_GROUP_H_

#include <algorithm>
#include <cstdint>
#include <map>

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

}  // namespace pace

#endif  // PACE_ENGINES_REMOTE_GROUP_H_
