// How a token's log-prob and advantage move together in a batch.
//
//   cov_t = (A_t - mean A) (log pi_theta - mean log pi_theta)
//
// over the policy tokens, without gradient. A few tokens with a large value
// drive the fall of entropy (arXiv 2505.22617); clip_cov leaves some of them
// out, kl_cov holds the largest back.
#ifndef PACE_TRAIN_LOSS_COVARIANCE_H_
#define PACE_TRAIN_LOSS_COVARIANCE_H_

#include <vector>

#include "train/metric.h"
#include "train/token_batch.h"

namespace pace {

// One entry per token; 0 where the mask is 0.
inline std::vector<double> TokenCovariances(const TokenBatch& batch) {
  MeanOf advantage;
  MeanOf logprob;
  for (size_t token = 0; token < batch.num_tokens(); ++token) {
    if (!batch.is_policy_token(token)) continue;
    advantage.Add(batch.advantages[token]);
    logprob.Add(batch.frozen(token));
  }
  std::vector<double> covariances(batch.num_tokens(), 0.0);
  for (size_t token = 0; token < batch.num_tokens(); ++token) {
    if (!batch.is_policy_token(token)) continue;
    covariances[token] =
        (batch.advantages[token] - advantage.value()) * (batch.frozen(token) - logprob.value());
  }
  return covariances;
}

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_COVARIANCE_H_
