// The numbers of a cell that arms are compared by.
//
//   base, best, best_step, final, area     accuracy: before, the best evaluation
//                                          and its step, the last, the mean over
//                                          updates (area under the curve)
//   gain             the last accuracy over the one before
//   pass, greedy     the last pass@k, where results per problem were kept, and the last
//                    accuracy of greedy responses (evaluation.greedy)
//   equal_time       best accuracy within the time the baseline's cell took,
//                    evaluations joined by straight lines
//   equal_gpu, equal_tokens
//                    the same within its GPU time, and the tokens it generated
//   reach95          time until 95 % of the way from Sync's first accuracy to its
//                    best, over Sync's time to it; censored where the run ends before
//   reach            time until Sync's best accuracy, over Sync's time to it; likewise
//   updates50, updates80, time50, time80
//                    updates and seconds of the run's clock until 50 and 80 % of the
//                    way from Sync's first accuracy to its best; likewise
//   time_area        mean accuracy over the time that the baseline's cell took; a run
//                    that ends before is held at its last accuracy
//   step_seconds, wait_seconds, train_seconds, sync_seconds, rescore_seconds,
//   other_seconds, hidden_seconds, prompt_seconds
//                    means over all steps: a step, its five parts, rescoring beside
//                    them, and a step over the prompts it trained on
//   token_seconds    time of the run over the tokens it trained on
//   waiting, assembly, pool_wait, generation, lag, scored, occupancy, rejected,
//   length, length_ratio, reward, reward_ratio, entropy
//                    means over the second half of the steps; length and reward of
//                    the responses trained on, and over those of the offered. The
//                    entropy is the policy's as it trained, in nats per token
//   settling         occupancy over the one predicted, N_tar P/C (docs/method.md 6)
//   hours, gpu_hours, mega_tokens, never_trained, wasted
//                    totals; the last two are shares of the tokens generated:
//                    never_trained of groups rejected, evicted or lost, wasted of all
//                    that no step trained on. The difference is what was left when the
//                    run ended: the pool, and finished responses of unfinished groups
//
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_CELL_SUMMARY_H_
#define PACE_COMPARE_CELL_SUMMARY_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compare/cell.h"
#include "compare/experiment.h"
#include "compare/statistics.h"

namespace pace {

bool IsCellValue(std::string_view name);
// "base, best, ...", for messages.
std::string CellValueNames();

// Whether a value is computed from accuracies, and so depends on the choice of problems.
// REQUIRES: IsCellValue(name)
bool DependsOnProblems(std::string_view name);
// Whether a run may end before it has this value, as a time to an accuracy.
// REQUIRES: IsCellValue(name)
bool IsArrival(std::string_view name);

// A value of one run; NaN where it is not defined. A censored run ended before it had the
// value, which is at least `number`.
struct SeedValue {
  double number = std::numeric_limits<double>::quiet_NaN();
  bool censored = false;
  // The run ended before the baseline's; its last accuracy stands for the time that follows.
  bool held = false;
};

// NaN where a run has no value or is censored.
std::vector<double> NumbersOf(std::span<const SeedValue> values);

// Values that IsArrival: "0.253 ± 0.041 (8 of 8 reached)". Where runs are censored a mean over
// the others would be one of the fast runs; shown is a lower bound of the mean over all, in
// which censored runs count with what they exceed: "≥ 0.310 (3 of 8 never reached)".
std::string ShowArrivals(std::span<const SeedValue> values, double factor, int digits);

// The cells of an experiment, to be asked for values.
class CellTable {
 public:
  // Cells of other arms are left out.
  CellTable(const Experiment& experiment, const std::vector<Cell>& cells);

  // Seeds that every arm has, in order: what comparisons are made on.
  const std::vector<int64_t>& seeds() const { return seeds_; }
  const Experiment& experiment() const { return experiment_; }
  // One value per seed. REQUIRES, here and below: IsCellValue(name)
  std::vector<SeedValue> SeedValues(std::string_view arm, std::string_view name) const;
  // NaN where a run has none or is censored.
  std::vector<double> Values(std::string_view arm, std::string_view name) const;
  // Over the runs that have the value.
  Estimate Of(std::string_view arm, std::string_view name) const;

  // Problems of each benchmark, where all evaluations have kept the same; otherwise empty.
  std::vector<size_t> NumProblems() const;
  // How often each problem counts, by benchmark: sets the accuracies and pass@k to those of a
  // sample of problems. REQUIRES: NumProblems() weights, not all 0
  void WeighProblems(const std::vector<std::vector<double>>& weights);

  // REQUIRES: the arm and the seed are in the table
  const Cell& At(std::string_view arm, int64_t seed) const;

 private:
  SeedValue ValueOf(const Cell& cell, std::string_view name) const;
  SeedValue TimeAreaOf(const Cell& cell) const;

  const Experiment& experiment_;
  std::vector<Cell> cells_;
  std::map<std::string, Settings, std::less<>> settings_;  // by arm; with any seed
  std::vector<int64_t> seeds_;
};

}  // namespace pace

#endif  // PACE_COMPARE_CELL_SUMMARY_H_
