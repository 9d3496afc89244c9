#include "advise/advice_text.h"

#include <cmath>
#include <cstdio>
#include <span>
#include <string_view>

#include "cluster/model_shape.h"

namespace pace {
namespace {

std::string Fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return buffer;
}

// "-72.3 %", "+1.2 %"
std::string Change(double from, double to) {
  const double percent = 100 * (to / from - 1);
  return Concat(percent < 0 ? "" : "+", Fixed(percent, 1), " %");
}

std::string Counted(int64_t count, std::string_view noun) {
  return Concat(count, " ", noun, count == 1 ? "" : "s");
}

std::string TitlesOf(const std::vector<CandidateRuns>& runs, std::span<const size_t> indices) {
  std::string out;
  for (const size_t i : indices) {
    out += Concat(out.empty() ? "" : ", ", runs[i].candidate.title);
  }
  return out;
}

std::optional<size_t> IndexOf(const std::vector<CandidateRuns>& runs, std::string_view title) {
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].candidate.title == title) return i;
  }
  return std::nullopt;
}

class AdviceWords {
 public:
  AdviceWords(const std::vector<CandidateRuns>& runs, const Advice& advice, double slowdown)
      : runs_(runs), advice_(advice), slowdown_(slowdown), best_(runs[advice.best]) {}

  std::string Use() const {
    std::string out;
    for (const std::string& assignment : best_.overrides) out += Concat(" ", assignment);
    return Concat("use:  ", best_.candidate.title,
                  out.empty() ? ", as the settings say" : Concat(":", out));
  }

  std::string Why() const {
    const CandidateRuns& fastest = runs_[advice_.fastest];
    return Concat("why:  lag ", Lag(best_), ", the smallest within ", Fixed(100 * slowdown_, 1),
                  " % of the shortest time per trained token (", fastest.candidate.title, ", ",
                  Token(fastest), " us)");
  }

  // Against another candidate.
  std::string Beside(std::string_view label, size_t other) const {
    const CandidateRuns& reference = runs_[other];
    const double token = MeanOver(reference.seeds, &SeedResult::token_seconds).mean;
    return Concat(label, "against ", reference.candidate.title, ": lag ", Lag(best_),
                  " instead of ", Lag(reference), ", ", Step(best_), " s per step instead of ",
                  Step(reference), " (",
                  Change(token, MeanOver(best_.seeds, &SeedResult::token_seconds).mean),
                  " per trained token)");
  }

  std::string Waste() const {
    const double share = MeanOver(best_.seeds, &SeedResult::wasted).mean;
    std::string out =
        Concat("      ", Fixed(100 * share, 1), " % of the generated tokens are never trained");
    if (advice_.best_without_waste.has_value()) {
      const CandidateRuns& other = runs_[*advice_.best_without_waste];
      out += Concat("; without waste: ", other.candidate.title, ", lag ", Lag(other), ", ",
                    Step(other), " s per step");
    }
    return out;
  }

  std::string Sure() const {
    const auto num_seeds = static_cast<int64_t>(best_.seeds.size());
    const auto step = MeanOver(best_.seeds, &SeedResult::step_seconds).error;
    if (!step.has_value()) return "sure: one seed, so the spread is not known";
    const auto lag = MeanOver(best_.seeds, &SeedResult::lag).error;
    std::string out = Concat("sure: ", Counted(num_seeds, "seed"), ", standard error ",
                             Fixed(*step, 2), " s and ", Fixed(*lag, 2), " versions of lag; ");
    if (!advice_.tied.empty()) {
      return Concat(out, "a tie in lag with ", TitlesOf(runs_, advice_.tied));
    }
    return out + "no other is a tie";
  }

  // What makes the advice less sure; nothing for most layouts.
  std::vector<std::string> Doubts() const {
    std::vector<std::string> out;
    if (!advice_.nearly_fast.empty()) {
      out.push_back(Concat("      ", TitlesOf(runs_, advice_.nearly_fast),
                           ": fresher, and slower than allowed by less than the error"));
    }
    std::vector<size_t> unsettled;
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (!runs_[i].settled) unsettled.push_back(i);
    }
    if (!unsettled.empty()) {
      out.push_back(Concat("      not settled after ",
                           Counted(runs_[unsettled.front()].num_steps, "step"), ": ",
                           TitlesOf(runs_, unsettled)));
    }
    return out;
  }

 private:
  static std::string Lag(const CandidateRuns& runs) {
    return Fixed(MeanOver(runs.seeds, &SeedResult::lag).mean, 2);
  }
  static std::string Step(const CandidateRuns& runs) {
    return Fixed(MeanOver(runs.seeds, &SeedResult::step_seconds).mean, 2);
  }

  static std::string Token(const CandidateRuns& runs) {
    return Fixed(1e6 * MeanOver(runs.seeds, &SeedResult::token_seconds).mean, 2);
  }

  const std::vector<CandidateRuns>& runs_;
  const Advice& advice_;
  const double slowdown_;
  const CandidateRuns& best_;
};

std::string DescribeMachines(const Settings& settings) {
  const ClusterOptions& cluster = settings.cluster;
  const std::string engines =
      Concat(Counted(cluster.NumEngines(), "engine"), " of ", Counted(cluster.slots, "slot"));
  const std::string gpus =
      cluster.layout == Layout::kColocated
          ? Concat(Counted(cluster.AllGpus(), "GPU"), " that generate and train in turn, ", engines)
          : Concat(Counted(cluster.rollout_gpus, "rollout GPU"), " (", engines, ") and ",
                   Counted(cluster.trainer_gpus, "trainer GPU"));
  if (cluster.decode_costs == DecodeCosts::kConstant) return gpus;
  return Concat(gpus, "; a model of ", Fixed(NumParameters(settings.model) / 1e9, 1),
                " billion parameters");
}

std::string DescribeWorkload(const Settings& settings) {
  const WorkloadOptions& workload = settings.workload;
  const std::string mean = workload.length == LengthLaw::kFile
                               ? Concat("lengths of ", workload.lengths_file)
                               : Concat(workload.mean_tokens, " tokens on average");
  std::string out =
      Concat(Counted(settings.batch.num_groups, "group"), " of ", settings.batch.group_size,
             " responses per step; ", mean, ", at most ", workload.max_tokens);
  if (workload.max_turns > 1) {
    out += Concat("; ", workload.mean_turns, " turns on average, tool calls of ",
                  workload.tool_latency_s, " s");
  }
  return out;
}

}  // namespace

std::vector<std::string> DescribeLayout(const Settings& settings) {
  return {DescribeMachines(settings), DescribeWorkload(settings)};
}

std::vector<std::string> DescribeAdvice(const std::vector<CandidateRuns>& runs,
                                        const Advice& advice, double slowdown) {
  const AdviceWords words(runs, advice, slowdown);
  std::vector<std::string> lines = {words.Use(), words.Why()};
  const auto unfiltered = IndexOf(runs, kUnfilteredCandidate);
  if (unfiltered.has_value() && *unfiltered != advice.best) {
    lines.push_back(words.Beside("gain: ", *unfiltered));
  }
  const auto on_policy = IndexOf(runs, kOnPolicyCandidate);
  if (on_policy.has_value() && *on_policy != advice.best) {
    lines.push_back(words.Beside("cost: ", *on_policy));
  }
  lines.push_back(words.Waste());
  lines.push_back(words.Sure());
  for (std::string& doubt : words.Doubts()) lines.push_back(std::move(doubt));
  return lines;
}

}  // namespace pace
