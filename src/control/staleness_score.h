// StalenessScore: what a group counts for at admission, w1 K_wait + W K_gen.
//
// Under `prefix` the weight W is F(q), with q the percentile of the group's prefix score among
// those of the window. docs/method.md 2.3 gives the reason for each rule.
//
// Thread-safety: none.
#ifndef PACE_CONTROL_STALENESS_SCORE_H_
#define PACE_CONTROL_STALENESS_SCORE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/admission_options.h"
#include "control/score_window.h"
#include "core/decision.h"
#include "core/staleness.h"
#include "core/version.h"

namespace pace {

// F: 0 at q = 0, 1/2 at the median, 1 at q = 1; steeper for larger gamma.
double SharpenedPercentile(double percentile, double gamma);

class StalenessScore {
 public:
  // Prefix scores are ranked once the window holds `min_observations` of them.
  StalenessScore(const AdmissionOptions& options, int64_t window, int64_t min_observations);

  // The numbers of a Decision at `step`; verdict and reason stay open.
  Decision Of(const GroupSummary& group, PolicyVersion step) const;

  // Appends the prefix scores of a group that the window shall hold: of its members where
  // weights are theirs, else of the group.
  void Collect(const GroupSummary& group, std::vector<double>& prefix_scores) const;
  // Adds in order; the oldest leave once the window is full.
  void Add(std::span<const double> prefix_scores) { window_.Add(prefix_scores); }
  // Replaces the contents of the window.
  void Assign(std::span<const double> prefix_scores) { window_.Assign(prefix_scores); }
  // Oldest first.
  std::vector<double> Values() const { return window_.Values(); }

  bool ReadsMembers() const { return options_.weight_scope == WeightScope::kMember; }

 private:
  // W and its percentile for one prefix score.
  double Weight(const std::optional<double>& prefix_score, std::optional<double>& percentile) const;

  const AdmissionOptions options_;
  const int64_t min_observations_;
  ScoreWindow window_;
};

}  // namespace pace

#endif  // PACE_CONTROL_STALENESS_SCORE_H_
