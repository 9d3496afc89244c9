// NaivePace: PACE's rules written down as plainly as they are stated.
//
// Every question is answered from the full history by sorting it again. It is
// slow and stays forever: PaceAdmission must agree with it bit for bit.
#ifndef PACE_CONTROL_NAIVE_PACE_H_
#define PACE_CONTROL_NAIVE_PACE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "config/admission_options.h"
#include "core/decision.h"
#include "core/exact_math.h"
#include "core/random.h"
#include "core/staleness.h"

namespace pace {

class NaivePace {
 public:
  NaivePace(const AdmissionOptions& options, int64_t batch, uint64_t seed)
      : options_(options), batch_(batch), seed_(seed) {}

  StepPlan BeginStep(PolicyVersion step, int64_t occupancy) {
    for (const double score : drawn_) history_.push_back(score);
    for (const double score : drawn_prefix_) prefix_history_.push_back(score);
    drawn_.clear();
    drawn_prefix_.clear();
    const double target = static_cast<double>(options_.target_occupancy.value_or(batch_));
    const double n = static_cast<double>(occupancy);
    const double rate = std::min(1.0, std::max(0.0, (n - target) / std::max(n, 1.0)));
    smoothed_ = options_.beta * smoothed_ + (1.0 - options_.beta) * rate;
    double budget = std::min(smoothed_, options_.max_budget);
    if (options_.reserve_batch) {
      budget =
          std::min(budget, std::max(0.0, 1.0 - static_cast<double>(batch_) / std::max(n, 1.0)));
    }
    plan_ = {.step = step,
             .occupancy = occupancy,
             .target_rate = rate,
             .smoothed_rate = smoothed_,
             .budget = budget};
    const std::vector<double> window = SortedWindow(history_);
    if (static_cast<int64_t>(window.size()) < options_.min_observations || budget == 0) {
      return plan_;
    }
    const double h = static_cast<double>(window.size() - 1) * (1.0 - budget);
    const auto lo = static_cast<size_t>(h);
    const size_t hi = std::min(lo + 1, window.size() - 1);
    plan_.cutoff = window[lo] + (window[hi] - window[lo]) * (h - static_cast<double>(lo));
    if (options_.ties == TieRule::kFractional) {
      double above = 0, equal = 0;
      for (const double score : window) {
        above += score > *plan_.cutoff;
        equal += score == *plan_.cutoff;
      }
      const double owed = budget * static_cast<double>(window.size()) - above;
      if (equal > 0) plan_.tie_probability = std::min(1.0, std::max(0.0, owed / equal));
    }
    return plan_;
  }

  Decision Draw(const GroupSummary& group) {
    Decision out;
    const int64_t j = plan_.step.step();
    const auto n = static_cast<double>(group.members.size());
    double waiting = 0, generation = 0, prefix = 0, scored = 0;
    double weighted = 0, weights = 0, percentiles = 0, num_percentiles = 0;
    for (const MemberSummary& member : group.members) {
      waiting += static_cast<double>(j - member.completed.step());
      generation += member.generation;
      if (member.prefix_score.has_value()) {
        prefix += *member.prefix_score;
        scored += 1;
      }
      std::optional<double> percentile;
      const double weight = Weight(member.prefix_score, percentile);
      weights += weight;
      weighted += weight * member.generation;
      if (percentile.has_value()) {
        percentiles += *percentile;
        num_percentiles += 1;
      }
    }
    out.waiting = waiting / n;
    const double counted = options_.wait_measure == WaitMeasure::kPool
                               ? static_cast<double>(j - group.assembled.step())
                               : out.waiting;
    out.generation = generation / n;
    if (scored > 0) out.prefix_score = prefix / scored;
    if (options_.weight_scope == WeightScope::kGroup) {
      out.weight = Weight(out.prefix_score, out.percentile);
      out.score = options_.wait_weight * counted + out.weight * out.generation;
    } else {
      out.weight = weights / n;
      if (num_percentiles > 0) out.percentile = percentiles / num_percentiles;
      out.score = options_.wait_weight * counted + weighted / n;
    }
    const auto num_known = static_cast<int64_t>(SortedWindow(history_).size());
    if (num_known < options_.min_observations) {
      out.reason = Reason::kWarmingUp;
    } else if (*plan_.budget == 0) {
      out.reason = Reason::kNoBudget;
    } else if (out.score > *plan_.cutoff) {
      out.reason = Reason::kOverCutoff;
    } else if (out.score == *plan_.cutoff && options_.ties == TieRule::kFractional) {
      const double u =
          CounterRandom(seed_, 0x7469)
              .Uniform(static_cast<uint64_t>(group.id.value()), static_cast<uint64_t>(j));
      out.reason = u < plan_.tie_probability ? Reason::kTieRejected : Reason::kTieAdmitted;
    } else {
      out.reason = Reason::kUnderCutoff;
    }
    out.verdict = out.reason == Reason::kOverCutoff || out.reason == Reason::kTieRejected
                      ? Verdict::kReject
                      : Verdict::kAdmit;
    drawn_.push_back(out.score);
    if (options_.weight_scope == WeightScope::kMember) {
      for (const MemberSummary& member : group.members) {
        if (member.prefix_score.has_value()) drawn_prefix_.push_back(*member.prefix_score);
      }
    } else if (out.prefix_score.has_value()) {
      drawn_prefix_.push_back(*out.prefix_score);
    }
    return out;
  }

 private:
  std::vector<double> SortedWindow(const std::vector<double>& history) const {
    const auto size = static_cast<size_t>(options_.Window(batch_));
    std::vector<double> window(history.end() - static_cast<int64_t>(std::min(size, history.size())),
                               history.end());
    std::sort(window.begin(), window.end());
    return window;
  }

  double Weight(const std::optional<double>& prefix, std::optional<double>& percentile) const {
    if (options_.generation_weight == GenerationWeight::kOne) return 1;
    if (options_.generation_weight == GenerationWeight::kZero) return 0;
    const std::vector<double> window = SortedWindow(prefix_history_);
    if (!prefix.has_value() || static_cast<int64_t>(window.size()) < options_.min_observations) {
      return options_.unscored_weight;
    }
    double at_most = 0;
    for (const double score : window) at_most += score <= *prefix;
    const double q = at_most / static_cast<double>(window.size());
    percentile = q;
    const double up = exact::Pow(q, options_.gamma);
    return up / (up + exact::Pow(1.0 - q, options_.gamma));
  }

  const AdmissionOptions options_;
  const int64_t batch_;
  const uint64_t seed_;
  StepPlan plan_;
  double smoothed_ = 0;
  std::vector<double> history_, prefix_history_, drawn_, drawn_prefix_;
};

}  // namespace pace

#endif  // PACE_CONTROL_NAIVE_PACE_H_
