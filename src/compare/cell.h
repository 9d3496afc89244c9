// Cell: what one run of a comparison leaves behind, and its line of cells.jsonl.
//
// A line holds the arm, the seed, a digest of the settings, a digest of the
// final weights, the evaluations, a column of per-step values for each name in
// kStepColumns, and where it is asked for a column of kGroupColumns over all
// groups that were drawn, and for every evaluation the correct responses of each
// problem. The same settings and the same program give the same bytes.
//
//   Result<Cell> cell = RunCell({"async", 1}, settings, policy, {});
//   file << CellToJson(*cell) << "\n";
//
// Thread-safety: pure functions; RunCell may run side by side with itself.
#ifndef PACE_COMPARE_CELL_H_
#define PACE_COMPARE_CELL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/experiment.h"
#include "config/settings.h"
#include "core/status.h"
#include "execution/evaluator.h"
#include "execution/policy.h"

namespace pace {

// Of metrics.jsonl.
inline constexpr std::array<std::string_view, 31> kStepColumns = {
    "time",
    "time/step",
    "time/wait_data",
    "time/train",
    "time/sync",
    "time/rescore_visible",
    "time/other",
    "time/rescore_hidden",
    "staleness/waiting/mean",
    "staleness/waiting_assembly/mean",
    "staleness/waiting_pool/mean",
    "staleness/generation/mean",
    "staleness/effective/mean",
    "staleness/lag/mean",
    "prefix/scored_fraction",
    "pool/occupancy",
    "admission/budget",
    "admission/offered",
    "admission/rejected",
    "selection/length_offered",
    "selection/length_trained",
    "selection/reward_offered",
    "selection/reward_trained",
    "throughput/produced",
    "throughput/consumed",
    "cost/gpu_time",
    "cost/tokens_generated",
    "cost/tokens_never_trained",
    "train/entropy",
    "train/clip_fraction",
    "train/grad_norm",
};

// Of runs with a tool, besides.
inline constexpr std::array<std::string_view, 4> kToolColumns = {
    "tools/calls",
    "tools/success",
    "tools/seconds",
    "selection/turns_trained",
};

// Of every drawn group, in the order of draws. `waiting`, `generation`, `score`
// as the policy saw them; `admitted` 0 or 1; `length` and `reward` means over
// its members.
inline constexpr std::array<std::string_view, 7> kGroupColumns = {
    "step", "admitted", "waiting", "generation", "score", "length", "reward",
};

// Of one benchmark: for each problem how many of its responses are correct. In the file a
// character per problem, 0 to 9, a to z, A to Z.
struct ProblemCounts {
  std::vector<int64_t> correct = {};

  bool operator==(const ProblemCounts&) const = default;
};
// The most responses to a problem that a character can count.
inline constexpr int64_t kMaxProblemResponses = 61;

// One evaluation: the plain mean over the benchmarks.
struct CellEvaluation {
  int64_t step = 0;  // steps done
  double time = 0;   // of the run's clock
  double accuracy = 0;
  double length = 0;
  std::optional<double> greedy = {};  // accuracy of greedy responses, with evaluation.greedy
  // Where problems were kept: k and pass@k, the share of problems with a correct response.
  int64_t num_responses = 0;
  std::optional<double> pass = {};
  std::vector<ProblemCounts> problems = {};  // by benchmark

  bool operator==(const CellEvaluation&) const = default;
};

struct Cell {
  CellId id = {};
  std::string settings_digest = {};
  std::string weights_digest = {};
  std::vector<CellEvaluation> evaluations = {};
  // By name; all of one length, the number of steps. A value that a step lacks
  // is NaN.
  using Columns = std::map<std::string, std::vector<double>, std::less<>>;
  Columns steps = {};
  // Likewise over drawn groups; empty where they were not kept.
  Columns groups = {};

  size_t num_steps() const { return steps.empty() ? 0 : steps.begin()->second.size(); }
  bool operator==(const Cell& other) const;  // NaN equals NaN
};

// Of everything that can change a result.
std::string DigestOf(const Settings& settings, const Policy& policy);

struct CellOptions {
  std::function<void(int64_t steps_done, int64_t num_steps)> progress = {};
  bool keep_groups = false;
  bool keep_problems = false;  // REQUIRES: evaluation.num_responses <= kMaxProblemResponses
  // Scores of the policy, where they are known: the evaluation before the first step.
  const std::vector<BenchmarkScore>* first_scores = nullptr;
};

// Whether the evaluation before the first step depends on settings and policy alone, so that cells
// can share it: on the CPU, without tools and without a reward function of the user.
bool SharesFirstScores(const Settings& settings);
// Equal for cells with the same evaluation before the first step.
// REQUIRES: SharesFirstScores
std::string FirstScoresKey(const Settings& settings, const Policy& policy);
// Makes that evaluation.
Result<std::vector<BenchmarkScore>> FirstScores(const Settings& settings, const Policy& policy);

Result<Cell> RunCell(const CellId& id, const Settings& settings, const Policy& policy,
                     const CellOptions& options);

// One line, without the line break. Values carry six significant digits.
std::string CellToJson(const Cell& cell);
Result<Cell> ParseCell(std::string_view json);
// A file of them. A cut last line is left out.
Result<std::vector<Cell>> ReadCells(const std::string& path);

}  // namespace pace

#endif  // PACE_COMPARE_CELL_H_
