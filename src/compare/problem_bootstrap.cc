#include "compare/problem_bootstrap.h"

#include <cmath>
#include <vector>

#include "compare/claims.h"
#include "core/random.h"

namespace pace {
namespace {

constexpr uint32_t kSeedStream = 0x73656564;     // "seed"
constexpr uint32_t kProblemStream = 0x70726f62;  // "prob"

// One of [0, size), by the i-th draw of a round.
size_t Draw(const CounterRandom& random, int64_t round, size_t i, size_t size) {
  const double uniform = random.Uniform(static_cast<uint64_t>(round), i);
  return static_cast<size_t>(uniform * static_cast<double>(size));
}

// How often each problem is drawn, by benchmark.
std::vector<std::vector<double>> DrawProblems(const CounterRandom& random, int64_t round,
                                              const std::vector<size_t>& sizes) {
  std::vector<std::vector<double>> weights;
  size_t next = 0;
  for (const size_t size : sizes) {
    std::vector<double>& counts = weights.emplace_back(size, 0.0);
    for (size_t i = 0; i < size; ++i) counts[Draw(random, round, next++, size)] += 1;
  }
  return weights;
}

double MeanOfDrawnSeeds(const CounterRandom& random, int64_t round,
                        const std::vector<SeedValue>& values) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const SeedValue& drawn = values[Draw(random, round, i, values.size())];
    if (drawn.censored) return std::nan("");
    sum += drawn.number;
  }
  return sum / static_cast<double>(values.size());
}

// `found` with the interval that the means of all rounds give; none where one is not defined.
std::optional<Estimate> WithRounds(Estimate found, const std::vector<double>& means) {
  const auto num_rounds = static_cast<double>(means.size());
  const auto num_seeds = static_cast<double>(found.count);
  double mean = 0, variance = 0;
  for (const double value : means) mean += value / num_rounds;
  if (std::isnan(mean)) return std::nullopt;
  for (const double value : means) {
    variance += (value - mean) * (value - mean) / (num_rounds - 1);
  }
  found.half_width =
      StudentQuantile(found.count - 1) * std::sqrt(variance * num_seeds / (num_seeds - 1));
  return found;
}

}  // namespace

std::vector<std::optional<Estimate>> BootstrapOverProblems(const CellTable& table,
                                                           std::span<const Claim> claims,
                                                           const BootstrapOptions& options) {
  std::vector<std::optional<Estimate>> found(claims.size());
  const std::vector<size_t> sizes = table.NumProblems();
  const size_t num_seeds = table.seeds().size();
  if (sizes.empty() || num_seeds < 2 || options.num_rounds < 2) return found;
  const CounterRandom seeds(options.seed, kSeedStream);
  const CounterRandom problems(options.seed, kProblemStream);
  CellTable drawn = table;
  std::vector<std::vector<double>> means(claims.size());
  for (int64_t round = 0; round < options.num_rounds; ++round) {
    drawn.WeighProblems(DrawProblems(problems, round, sizes));
    for (size_t i = 0; i < claims.size(); ++i) {
      means[i].push_back(MeanOfDrawnSeeds(seeds, round, SeedValuesOf(drawn, claims[i])));
    }
  }
  for (size_t i = 0; i < claims.size(); ++i) {
    const Estimate plain = Examine(table, claims[i]).found;
    const bool applies = DependsOnProblems(claims[i].value) && !claims[i].is_recovered_share();
    if (applies && plain.count == num_seeds) found[i] = WithRounds(plain, means[i]);
  }
  return found;
}

}  // namespace pace
