// Experiment: a comparison as a file describes it.
//
//   title: Six methods, eight seeds
//   paper: table 1, figures 1, 5 and 10      # what it stands beside
//   base: tiny-cluster                       # a preset, or a settings file
//   set: [run.num_steps=80]
//   seeds: 8
//   first_seed: 101                          # seeds 101 to 108; by default from 1
//   baseline: async                          # differences are taken to it
//   groups: true                             # keep every drawn group, for its tables
//   problems: true                           # keep results per problem, for intervals
//   arms:
//     - sync
//     - async
//     - {name: gamma-2, method: effective, set: [admission.gamma=2]}
//   claims:
//     - {says: Async waits longer, value: waiting, of: async, over: effective, at_least: 3}
//     - {says: gamma 2 recovers half, recovered: {value: area, of: gamma-2, from: async, to: sync},
//        at_least: 0.5, family: cost}
//
// An arm that is a word is the method of that name. A claim bounds the value of
// one arm, or its ratio to another's, seed by seed; `paper` is the published
// number, shown beside ours. `recovered` is the share of the difference between
// two arms that a third recovers, (of - from) / (to - from). Claims of one
// `family` are decided together, by Holm's correction.
//
// Thread-safety: values and pure functions.
#ifndef PACE_COMPARE_EXPERIMENT_H_
#define PACE_COMPARE_EXPERIMENT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "core/status.h"

namespace pace {

struct Arm {
  std::string name = {};
  std::string method = {};
  std::vector<std::string> set = {};  // overrides, after the method's
};

struct Claim {
  std::string says = {};
  std::string value = {};  // a name of cell_summary.h
  std::string of = {};     // an arm
  std::string over = {};   // an arm, or empty
  // Of a recovered share, the arms at 0 and at 1; otherwise empty.
  std::string from = {};
  std::string to = {};
  std::optional<double> at_least = {};
  std::optional<double> at_most = {};
  std::optional<double> paper = {};
  std::string family = {};  // of claims that are decided together; or empty

  bool is_recovered_share() const { return !from.empty(); }
  bool has_bound() const { return at_least.has_value() || at_most.has_value(); }
};

struct Experiment {
  std::string name = {};
  std::string title = {};
  std::string paper = {};
  std::string base = {};
  std::vector<std::string> set = {};
  int64_t num_seeds = 8;
  int64_t first_seed = 1;
  std::string baseline = {};
  bool keep_groups = false;
  bool keep_problems = false;
  std::vector<Arm> arms = {};
  std::vector<Claim> claims = {};

  // Null when there is no such arm.
  const Arm* FindArm(std::string_view arm) const;
  int64_t last_seed() const { return first_seed + num_seeds - 1; }
};

// One run: an arm under a seed.
struct CellId {
  std::string arm = {};
  int64_t seed = 0;

  bool operator==(const CellId&) const = default;
};

Result<Experiment> ParseExperiment(std::string_view yaml, const std::string& name);
// A file, the name of one in the folder `experiments`, or of one built in.
Result<Experiment> LoadExperiment(const std::string& name_or_path);

// Settings of one cell. `overrides` are the user's and come last.
Result<Settings> SettingsOf(const Experiment& experiment, const CellId& cell,
                            const std::vector<std::string>& overrides);

// Overrides of a whole comparison as part of its arms, for what is computed from its cells.
Experiment WithOverrides(Experiment experiment, const std::vector<std::string>& overrides);

// The experiments of the folder `experiments`, inside the program as presets are.
struct BuiltInExperiment {
  std::string_view name;  // of the file, without its ending
  std::string_view yaml;
};

// By name.
std::span<const BuiltInExperiment> BuiltInExperiments();

}  // namespace pace

#endif  // PACE_COMPARE_EXPERIMENT_H_
