// Experiment: a comparison as a file describes it.
//
//   title: Six methods, eight seeds
//   paper: table 1, figures 1, 5 and 10      # what it stands beside
//   base: tiny-cluster                       # a preset, or a settings file
//   set: [run.num_steps=80]
//   seeds: 8
//   baseline: async                          # differences are taken to it
//   groups: true                             # keep every drawn group, for its tables
//   arms:
//     - sync
//     - async
//     - {name: gamma-2, method: effective, set: [admission.gamma=2]}
//   claims:
//     - {says: Async waits longer, value: waiting, of: async, over: effective, at_least: 3}
//
// An arm that is a word is the method of that name. A claim bounds the value of
// one arm, or its ratio to another's, seed by seed; `paper` is the published
// number, shown beside ours.
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
  std::optional<double> at_least = {};
  std::optional<double> at_most = {};
  std::optional<double> paper = {};
};

struct Experiment {
  std::string name = {};
  std::string title = {};
  std::string paper = {};
  std::string base = {};
  std::vector<std::string> set = {};
  int64_t num_seeds = 8;
  std::string baseline = {};
  bool keep_groups = false;
  std::vector<Arm> arms = {};
  std::vector<Claim> claims = {};

  // Null when there is no such arm.
  const Arm* FindArm(std::string_view arm) const;
};

// One run: an arm under a seed. Seeds count from 1.
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

// The experiments of the folder `experiments`, inside the program as presets are.
struct BuiltInExperiment {
  std::string_view name;  // of the file, without its ending
  std::string_view yaml;
};

// By name.
std::span<const BuiltInExperiment> BuiltInExperiments();

}  // namespace pace

#endif  // PACE_COMPARE_EXPERIMENT_H_
