// Packing: which sequences share a forward pass.
//
// First fit, longest first, into bins of a token budget: within 11/9 of the
// fewest bins, plus one. What a bin holds never changes the objective
// (reduction.h), only memory and speed. A sequence above the budget has a bin
// to itself.
// Thread-safety: pure.
#ifndef PACE_TRAIN_PACKING_H_
#define PACE_TRAIN_PACKING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pace {

// Indices of the sequences of each bin, rising within a bin; bins in the order
// of their first sequence, so that the order is a function of the lengths alone.
// REQUIRES: token_budget > 0, lengths > 0
std::vector<std::vector<size_t>> PackSequences(std::span<const int64_t> lengths,
                                               int64_t token_budget);

// Shares sequences among at most `count` threads, the longest first and each to
// the thread with the fewest tokens. Indices rise within a share; no share is
// empty. REQUIRES: count > 0
std::vector<std::vector<size_t>> ShareSequences(std::span<const int64_t> lengths, int64_t count);

}  // namespace pace

#endif  // PACE_TRAIN_PACKING_H_
