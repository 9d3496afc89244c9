// RemoteWorld: a RemoteCore and a FakeServer with a network between them, for tests.
//
// Thread-safety: none.
#ifndef PACE_ENGINES_REMOTE_WORLD_H_
#define PACE_ENGINES_REMOTE_WORLD_H_

#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "engines/fake_server.h"
#include "engines/remote_core.h"

namespace pace {

class RemoteWorld {
 public:
  explicit RemoteWorld(const RemoteOptions& options) : core(VllmDialect(), options) {}

  // Moves what the core wants into the network.
  void Collect() {
    for (RemoteAction& action : core.TakeActions()) {
      if (auto* send = std::get_if<SendCall>(&action)) {
        calls.push_back(std::move(*send));
      } else if (auto* event = std::get_if<RolloutEvent>(&action)) {
        events.push_back(std::move(*event));
      } else if (const auto* open = std::get_if<OpenChannel>(&action)) {
        num_workers = open->num_workers;
        transfers.push_back(open->call);
        core.Invited(open->call, "{}");
        Collect();
      } else if (const auto* weights = std::get_if<SendWeights>(&action)) {
        transfers.push_back(weights->call);
      } else if (std::get_if<AskPause>(&action) != nullptr) {
        asks_pause = true;
      } else if (std::get_if<EndPause>(&action) != nullptr) {
        asks_pause = false;
        ++num_pauses_ended;
      }
    }
  }
  // Both ends of the channel meet, if they are there.
  bool Meet() {
    if (transfers.empty() || !server.waits_for_channel()) return false;
    server.MeetOnChannel();
    for (FakeServer::Answer& answer : server.TakeAnswers()) answers.push_back(std::move(answer));
    met.push_back(transfers.front());
    transfers.erase(transfers.begin());
    return true;
  }
  // Our end says what became of it.
  void SayMet(const Status& status = Status::Ok()) {
    const int64_t call = met.front();
    met.erase(met.begin());
    core.Transferred(call, status);
    Collect();
  }
  // Carries one call to the server, or one answer back.
  void DeliverCall(size_t index) {
    const SendCall call = calls[index];
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(index));
    server.Receive(call.call, call.http);
    for (FakeServer::Answer& answer : server.TakeAnswers()) answers.push_back(std::move(answer));
  }
  void DeliverAnswer(size_t index) {
    const FakeServer::Answer answer = answers[index];
    answers.erase(answers.begin() + static_cast<std::ptrdiff_t>(index));
    core.Answered(answer.call, answer.answer);
    Collect();
  }
  void StepServer() {
    server.Step();
    for (FakeServer::Answer& answer : server.TakeAnswers()) answers.push_back(std::move(answer));
  }
  // Everything in its order until the network is empty.
  void Settle() {
    Collect();
    while (!calls.empty() || !answers.empty() || !met.empty()) {
      if (!calls.empty()) {
        DeliverCall(0);
        if (meets) Meet();
      } else if (!answers.empty()) {
        DeliverAnswer(0);
      } else {
        SayMet();
      }
    }
  }
  // Until nothing is in flight.
  void RunDry(int64_t most_steps = 100000) {
    Settle();
    for (int64_t i = 0; i < most_steps && server.num_running() > 0; ++i) {
      StepServer();
      Settle();
    }
  }

  template <typename T>
  std::vector<T> Take() {
    std::vector<T> found;
    std::deque<RolloutEvent> rest;
    for (RolloutEvent& event : events) {
      if (auto* typed = std::get_if<T>(&event)) {
        found.push_back(std::move(*typed));
      } else {
        rest.push_back(std::move(event));
      }
    }
    events = std::move(rest);
    return found;
  }

  RemoteCore core;
  FakeServer server;
  std::vector<SendCall> calls;
  std::vector<FakeServer::Answer> answers;
  std::deque<RolloutEvent> events;
  std::vector<int64_t> transfers;  // begun
  std::vector<int64_t> met;        // whose end our end does not know yet
  bool meets = true;
  int64_t num_workers = 0;  // of the channel that was opened
  bool asks_pause = false;
  int64_t num_pauses_ended = 0;
};

inline RemoteOptions WorldOptions(SyncMode mode = SyncMode::kReprefill, bool scores = true) {
  RemoteOptions options;
  options.run = "run";
  options.rollout.sync_mode = mode;
  options.rollout.score_prefixes = scores;
  options.rollout.min_scored = 4;
  options.rollout.max_scored = 12;
  options.vocabulary = FakeServer::kVocabulary;
  options.max_context = 1000;
  options.probe = {1, 2, 3};
  return options;
}

inline GroupRequest WorldRequest(int64_t group, int64_t num_responses, int64_t max_tokens) {
  GroupRequest request;
  request.group = GroupId(group);
  request.prompt = PromptIndex(group);
  request.seed = 7;
  request.prompt_tokens = {1, 2, static_cast<TokenId>(group % 40)};
  request.num_responses = num_responses;
  request.stop.max_tokens = max_tokens;
  request.stop.stop_tokens = {0};
  return request;
}

// What every finished response of an honest server satisfies.
inline bool IsTrue(const GroupRequest& request, const PartialResponse& response) {
  for (size_t i = 0; i < response.tokens.size(); ++i) {
    const TokenRecord& token = response.tokens[i];
    if (token.is_tool) continue;
    const auto count = static_cast<int64_t>(request.prompt_tokens.size() + i);
    const std::string label = Concat("run:", token.version.step());
    if (token.logprob != FakeServer::LogprobOf(label, count, token.id)) return false;
  }
  return true;
}

}  // namespace pace

#endif  // PACE_ENGINES_REMOTE_WORLD_H_
