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
#include "engines/world_values.h"

namespace pace {

class RemoteWorld {
 public:
  explicit RemoteWorld(const RemoteOptions& options,
                       FakeServer::Kind kind = FakeServer::Kind::kVllm)
      : server(kind), core(server.dialect(), options) {}

  // Moves what the core wants into the network.
  void Collect() {
    for (RemoteAction& action : core.TakeActions()) {
      if (auto* send = std::get_if<SendCall>(&action)) {
        calls.push_back(std::move(*send));
      } else if (auto* event = std::get_if<RolloutEvent>(&action)) {
        events.push_back(std::move(*event));
      } else if (const auto* open = std::get_if<OpenChannel>(&action)) {
        num_workers = open->num_workers;
        // SGLang's workers join in their first broadcast.
        const bool joins = server.kind() == FakeServer::Kind::kVllm;
        (joins ? transfers : met).push_back(open->call);
        core.Invited(open->call, {.num_workers = num_workers,
                                  .group = Concat("pace-", ++num_channels),
                                  .address = joins ? "" : "10.0.0.1",
                                  .port = 29500,
                                  .buffer_bytes = kBufferBytes});
        Collect();
      } else if (const auto* weights = std::get_if<SendWeights>(&action)) {
        transfers.push_back(weights->call);
        for (const WeightChunk& chunk : weights->chunks) num_sent += chunk.count;
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

  FakeServer server;
  RemoteCore core;
  std::vector<SendCall> calls;
  std::vector<FakeServer::Answer> answers;
  std::deque<RolloutEvent> events;
  std::vector<int64_t> transfers;  // begun
  std::vector<int64_t> met;        // whose end our end does not know yet
  bool meets = true;
  int64_t num_workers = 0;  // of the channel that was opened
  int64_t num_channels = 0;
  size_t num_sent = 0;  // tensors
  bool asks_pause = false;
  int64_t num_pauses_ended = 0;
};

}  // namespace pace

#endif  // PACE_ENGINES_REMOTE_WORLD_H_
