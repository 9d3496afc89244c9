// Advise chooses a controller from what the candidates' simulations measured.
//
// The rule. *Fast* candidates need a time per trained token within `slowdown` of the fastest. (The
// time of a step would reward rejecting long responses.) Among them the smallest lag wins. A lag
// that is not clearly larger is a tie; ties go to a candidate that wastes nothing, then to the
// simpler one. "Clearly" means: by more than two standard errors of the difference per seed, and by
// more than 0.1 versions.
//
//   const Advice advice = Advise(runs, 0.02);
//   runs[advice.best].candidate.title;
//
// Thread-safety: pure functions.
#ifndef PACE_ADVISE_ADVICE_H_
#define PACE_ADVISE_ADVICE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "advise/candidate_runs.h"

namespace pace {

// A mean over seeds and its standard error; no error is known of one seed.
struct SeedMean {
  double mean = 0;
  std::optional<double> error = {};
};
SeedMean MeanOver(std::span<const SeedResult> seeds, double SeedResult::* value);
// Of a - b, seed by seed. REQUIRES: as many seeds.
SeedMean MeanDifference(std::span<const SeedResult> a, std::span<const SeedResult> b,
                        double SeedResult::* value);

// Indices into the candidates.
struct Advice {
  size_t best = 0;
  size_t fastest = 0;
  std::vector<size_t> fast;  // within the slowdown, in the order of the candidates
  std::vector<size_t> tied;  // fast, and in lag a tie with the smallest; without `best`
  // Slower than allowed, but by less than two standard errors, and of clearly smaller lag than
  // `best`: with other seeds the advice might name one of them.
  std::vector<size_t> nearly_fast;
  // Where `best` wastes something: the best of those that waste nothing, by the same rule.
  std::optional<size_t> best_without_waste = {};
};

// REQUIRES: runs is not empty; every candidate has the same seeds, at least one.
Advice Advise(const std::vector<CandidateRuns>& runs, double slowdown);

// A share of tokens that counts as none.
inline constexpr double kNoWaste = 0.005;

}  // namespace pace

#endif  // PACE_ADVISE_ADVICE_H_
