// RunComparison: every cell of an experiment, side by side, resumable.
//
// Cells are independent and single-threaded; `num_jobs` of them run at a time.
// Whenever one is done, `directory`/cells.jsonl is replaced by the cells there
// are, arm by arm and seed by seed. Cells in that file whose settings have not
// changed are not run again, so a comparison that was killed goes on. A cell that another
// comparison has made under equal settings is taken from it, if it is among `finished`.
//
//   Result<std::vector<Cell>> cells = RunComparison(experiment, options);
//
// Thread-safety: a function of its arguments and the disk; one at a time per
// directory.
#ifndef PACE_COMPARE_COMPARISON_H_
#define PACE_COMPARE_COMPARISON_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compare/cell.h"
#include "compare/experiment.h"
#include "core/status.h"

namespace pace {

// What a comparison finds before its first cell runs, in cells.
struct ComparisonWork {
  size_t to_run = 0;
  size_t kept = 0;   // in the file, and not run again
  size_t taken = 0;  // of `finished`
};

struct ComparisonOptions {
  std::string directory = {};
  int64_t num_jobs = 0;  // 0 = one per core
  std::vector<std::string> overrides = {};
  // Only these; empty = all. Others in the file stay.
  std::vector<CellId> only = {};
  bool again = false;  // run every cell, also those in the file and in `finished`
  // Cells of other comparisons, whatever their names. On the CPU, one of equal settings, which
  // include the seed, stands for the run, without the groups and problems that are not wanted.
  // REQUIRES: by this program, on this kind of processor
  std::vector<Cell> finished = {};
  // Called from the threads of cells: the cell's place among those to run.
  std::function<void(size_t cell, int64_t steps_done, int64_t num_steps)> progress = {};
  // Called once, before the first cell runs.
  std::function<void(const ComparisonWork& work)> begin = {};
  // Asked between cells: whether to stop with what there is.
  std::function<bool()> stop = {};
};

// All cells that are there in the end, in order.
Result<std::vector<Cell>> RunComparison(const Experiment& experiment,
                                        const ComparisonOptions& options);

// All cells of an experiment, in order.
std::vector<CellId> CellsOf(const Experiment& experiment);

inline constexpr char kCellsFile[] = "cells.jsonl";

}  // namespace pace

#endif  // PACE_COMPARE_COMPARISON_H_
