// Intervals over seeds and problems.
//
// Intervals of Student's t over seeds hold for the problems of the benchmarks as they are. Here
// both are seen as samples: a round draws as many seeds and as many problems of each benchmark as
// there are, with replacement, and computes the claim anew. Every seed is evaluated on the same
// problems, so a round draws problems once for all seeds and arms. The standard deviation over
// rounds, times sqrt(n / (n - 1)) for the n seeds, is the standard error, and the interval is that
// of Student's t with n - 1 degrees of freedom: quantiles over rounds would be too narrow for
// few seeds. What is noise of single evaluations counts with both draws, so that the interval is
// rather too wide.
//
//   const std::vector<std::optional<Estimate>> found =
//       BootstrapOverProblems(table, experiment.claims, {});
//
// Draws are functions of (seed, round), so that the result is the same on every machine.
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_PROBLEM_BOOTSTRAP_H_
#define PACE_COMPARE_PROBLEM_BOOTSTRAP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compare/cell_summary.h"
#include "compare/experiment.h"
#include "compare/statistics.h"

namespace pace {

struct BootstrapOptions {
  int64_t num_rounds = 1000;
  uint64_t seed = 1;
};

// For each claim the mean as Examine finds it, with that interval. None where results per problem
// were not kept, for values that do not depend on problems, for recovered shares, with one seed,
// and where a run has no value or is censored, in any round.
std::vector<std::optional<Estimate>> BootstrapOverProblems(const CellTable& table,
                                                           std::span<const Claim> claims,
                                                           const BootstrapOptions& options);

}  // namespace pace

#endif  // PACE_COMPARE_PROBLEM_BOOTSTRAP_H_
