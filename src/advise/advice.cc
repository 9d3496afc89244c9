#include "advise/advice.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace pace {
namespace {

constexpr double kSmallLag = 0.1;  // versions
constexpr double kErrors = 2;      // standard errors

SeedMean MeanOf(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  SeedMean out;
  for (const double value : values) out.mean += value / count;
  if (values.size() < 2) return out;
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  out.error = std::sqrt(squares / (count - 1) / count);
  return out;
}

double MeanTime(const CandidateRuns& runs) {
  return MeanOver(runs.seeds, &SeedResult::token_seconds).mean;
}

double MeanLag(const CandidateRuns& runs) {
  return MeanOver(runs.seeds, &SeedResult::lag).mean;
}

bool WastesNothing(const CandidateRuns& runs) {
  return MeanOver(runs.seeds, &SeedResult::wasted).mean <= kNoWaste;
}

// Whether a's lag is larger than b's beyond chance and beyond what matters.
bool HasClearlyLargerLag(const CandidateRuns& a, const CandidateRuns& b) {
  const SeedMean difference = MeanDifference(a.seeds, b.seeds, &SeedResult::lag);
  return difference.mean > kSmallLag && difference.mean > kErrors * difference.error.value_or(0);
}

// How far a's time per trained token is above the limit that b's allows.
SeedMean AboveLimit(const CandidateRuns& a, const CandidateRuns& b, double slowdown) {
  std::vector<double> above;
  for (size_t i = 0; i < a.seeds.size(); ++i) {
    above.push_back(a.seeds[i].token_seconds - (1 + slowdown) * b.seeds[i].token_seconds);
  }
  return MeanOf(above);
}

// What would be advised among those that waste nothing.
std::optional<size_t> BestWithoutWaste(const std::vector<CandidateRuns>& runs, double slowdown) {
  std::vector<size_t> indices;
  std::vector<CandidateRuns> lean;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!WastesNothing(runs[i])) continue;
    indices.push_back(i);
    lean.push_back(runs[i]);
  }
  if (lean.empty()) return std::nullopt;
  return indices[Advise(lean, slowdown).best];
}

}  // namespace

SeedMean MeanOver(std::span<const SeedResult> seeds, double SeedResult::* value) {
  std::vector<double> values;
  for (const SeedResult& seed : seeds) values.push_back(seed.*value);
  return MeanOf(values);
}

SeedMean MeanDifference(std::span<const SeedResult> a, std::span<const SeedResult> b,
                        double SeedResult::* value) {
  PACE_CHECK(a.size() == b.size(), a.size(), " seeds beside ", b.size());
  std::vector<double> values;
  for (size_t i = 0; i < a.size(); ++i) values.push_back(a[i].*value - b[i].*value);
  return MeanOf(values);
}

Advice Advise(const std::vector<CandidateRuns>& runs, double slowdown) {
  PACE_CHECK(!runs.empty() && !runs.front().seeds.empty(), "nothing was measured");
  const auto faster = [&](size_t a, size_t b) { return MeanTime(runs[a]) < MeanTime(runs[b]); };
  const auto fresher = [&](size_t a, size_t b) { return MeanLag(runs[a]) < MeanLag(runs[b]); };
  Advice advice;
  for (size_t i = 1; i < runs.size(); ++i) {
    if (faster(i, advice.fastest)) advice.fastest = i;
  }
  std::vector<size_t> almost;
  for (size_t i = 0; i < runs.size(); ++i) {
    const SeedMean above = AboveLimit(runs[i], runs[advice.fastest], slowdown);
    if (above.mean <= 0) {
      advice.fast.push_back(i);
    } else if (above.mean <= kErrors * above.error.value_or(0)) {
      almost.push_back(i);
    }
  }

  const size_t freshest = *std::min_element(advice.fast.begin(), advice.fast.end(), fresher);
  for (const size_t i : advice.fast) {
    if (!HasClearlyLargerLag(runs[i], runs[freshest])) advice.tied.push_back(i);
  }
  const auto wasteless = std::find_if(advice.tied.begin(), advice.tied.end(),
                                      [&](size_t i) { return WastesNothing(runs[i]); });
  const auto best = wasteless != advice.tied.end() ? wasteless : advice.tied.begin();
  advice.best = *best;
  advice.tied.erase(best);
  if (!WastesNothing(runs[advice.best])) {
    advice.best_without_waste = BestWithoutWaste(runs, slowdown);
  }
  for (const size_t i : almost) {
    if (HasClearlyLargerLag(runs[advice.best], runs[i])) advice.nearly_fast.push_back(i);
  }
  return advice;
}

}  // namespace pace
