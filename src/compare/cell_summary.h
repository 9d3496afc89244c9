// The numbers of a cell that arms are compared by.
//
//   base, best, best_step, final, area     accuracy: before, the best evaluation
//                                          and its step, the last, the mean over
//                                          updates (area under the curve)
//   gain             the last accuracy over the one before
//   equal_time       best accuracy within the time the baseline's cell took,
//                    evaluations joined by straight lines
//   equal_gpu, equal_tokens
//                    the same within its GPU time, and the tokens it generated
//   reach95          time until 95 % of the way from Sync's first accuracy to its
//                    best, over Sync's time to it
//   reach            time until Sync's best accuracy, over Sync's time to it
//   step_seconds, wait_seconds, train_seconds, sync_seconds, rescore_seconds,
//   other_seconds, hidden_seconds, prompt_seconds
//                    means over all steps: a step, its five parts, rescoring beside
//                    them, and a step over the prompts it trained on
//   waiting, assembly, pool_wait, generation, lag, scored, occupancy, rejected,
//   length, length_ratio, reward, reward_ratio
//                    means over the second half of the steps; length and reward of
//                    the responses trained on, and over those of the offered
//   settling         occupancy over the one predicted, N_tar P/C (docs/method.md 6)
//   hours, gpu_hours, mega_tokens, never_trained
//                    totals; never_trained is a share of the tokens generated
//
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_CELL_SUMMARY_H_
#define PACE_COMPARE_CELL_SUMMARY_H_

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

// The cells of an experiment, to be asked for values.
class CellTable {
 public:
  // Cells of other arms are left out.
  CellTable(const Experiment& experiment, const std::vector<Cell>& cells);

  // Seeds that every arm has, in order: what comparisons are made on.
  const std::vector<int64_t>& seeds() const { return seeds_; }
  const Experiment& experiment() const { return experiment_; }
  // One value per seed; NaN where a run has none (it never reaches that accuracy, say). REQUIRES:
  // IsCellValue(name)
  std::vector<double> Values(std::string_view arm, std::string_view name) const;
  Estimate Of(std::string_view arm, std::string_view name) const;
  // REQUIRES: the arm and the seed are in the table
  const Cell& At(std::string_view arm, int64_t seed) const;

 private:
  double Value(const Cell& cell, std::string_view name) const;

  const Experiment& experiment_;
  std::vector<Cell> cells_;
  std::vector<int64_t> seeds_;
};

}  // namespace pace

#endif  // PACE_COMPARE_CELL_SUMMARY_H_
