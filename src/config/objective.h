// Words that losses, corrections and reductions share.
// Thread-safety: plain data.
#ifndef PACE_CONFIG_OBJECTIVE_H_
#define PACE_CONFIG_OBJECTIVE_H_

#include <array>
#include <string_view>

namespace pace {

// What the trained policy's probability is divided by: the log-probs recorded when
// the tokens were sampled, or recomputed before the step's first update.
enum class RatioReference { kRollout, kProximal };

// Whether a ratio is a token's own or that of its whole sequence.
enum class RatioLevel { kToken, kSequence };

// How the losses of tokens become one number (train/math/reduction.h).
enum class ReductionMode {
  kTokenMean,
  kTokenSum,
  kSequenceMeanTokenSum,
  kSequenceMeanTokenMean,
  kSequenceMeanTokenSumNorm,
};
// In that order, after the word for none.
inline constexpr std::array<std::string_view, 6> kReductionNames = {"auto",
                                                                    "token-mean",
                                                                    "token-sum",
                                                                    "seq-mean-token-sum",
                                                                    "seq-mean-token-mean",
                                                                    "seq-mean-token-sum-norm"};

// How much of a minibatch one evaluation of a loss must see.
enum class LossScope {
  // Each sequence stands for itself: any split into sequences gives the same objective.
  kSequence,
  // Tokens of the whole minibatch are compared with one another: evaluate it
  // at once and hand each micro-batch its part of the gradient.
  kMinibatch,
  // As kMinibatch, but compared within each micro-batch, as a peer does: the
  // objective then depends on the split.
  kMicroBatch,
  // Each token stands for itself: its derivative follows from its own log-prob.
  kToken,
};

}  // namespace pace

#endif  // PACE_CONFIG_OBJECTIVE_H_
