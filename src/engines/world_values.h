// What tests of a RemoteWorld ask for, and what must come out.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_ENGINES_WORLD_VALUES_H_
#define PACE_ENGINES_WORLD_VALUES_H_

#include <cstdint>
#include <string>

#include "engines/fake_server.h"
#include "engines/remote_options.h"
#include "model/tiny_configs.h"
#include "rollout/request.h"

namespace pace {

// Of a channel: WorldWeights are three buckets.
inline constexpr int64_t kBufferBytes = 20'000;

// To be synced over either path.
inline ServerWeights WorldWeights(int64_t version) {
  static const WeightSet weights = RandomWeights(TinyModel(Architecture::kQwen3), 5);
  return {.version = PolicyVersion(version),
          .folder = Concat("/weights/v", version),
          .weights = weights};
}

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

#endif  // PACE_ENGINES_WORLD_VALUES_H_
