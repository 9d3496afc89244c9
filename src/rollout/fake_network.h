// FakeNetwork, for tests: next tokens and log-probabilities as hashes.
//
// A sequence is its hash, extended token by token; weights are a number. Equal
// sequences under equal weights give equal rows, and nothing else does.
// Thread-safety: pure functions.
#ifndef PACE_ROLLOUT_FAKE_NETWORK_H_
#define PACE_ROLLOUT_FAKE_NETWORK_H_

#include <bit>
#include <cstdint>

#include "core/token_id.h"
#include "model/sampling.h"

namespace pace {

class FakeNetwork {
 public:
  explicit FakeNetwork(int64_t vocab_size) : vocab_size_(vocab_size) {}

  static uint64_t Extend(uint64_t hash, TokenId token) {
    return Mix(hash, static_cast<uint64_t>(token) + 1);
  }
  static float LogProb(uint64_t hash, uint64_t weights, double scale, TokenId target) {
    const uint64_t bits =
        Mix(Mix(Mix(hash, weights), std::bit_cast<uint64_t>(scale)), static_cast<uint64_t>(target));
    return -0.001f - static_cast<float>(bits % 100000) * 5e-5f;
  }
  Sampled Draw(uint64_t hash, uint64_t weights, const SamplingOptions& options,
               const SampleKey& key) const {
    uint64_t bits = Mix(Mix(hash, weights), std::bit_cast<uint64_t>(options.temperature));
    if (!options.greedy()) {
      bits = Mix(Mix(bits, key.seed), static_cast<uint64_t>(key.prompt));
      bits = Mix(Mix(bits, static_cast<uint64_t>(key.response)), static_cast<uint64_t>(key.token));
    }
    const auto token = static_cast<TokenId>(bits % static_cast<uint64_t>(vocab_size_));
    const float logprob = LogProb(hash, weights, options.scale(), token);
    return {.token = token,
            .logprob = logprob,
            .sampled_logprob = options.truncated() ? logprob / 2 : logprob};
  }

 private:
  static uint64_t Mix(uint64_t a, uint64_t b) {
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  int64_t vocab_size_;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_FAKE_NETWORK_H_
