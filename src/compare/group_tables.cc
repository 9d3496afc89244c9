#include "compare/group_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "compare/markdown.h"

namespace pace {
namespace {

struct DrawnGroup {
  bool admitted = false;
  double waiting = 0, generation = 0, score = 0, length = 0, reward = 0;

  double lag() const { return waiting + generation; }
};

// Of the second half of the steps.
std::vector<DrawnGroup> GroupsOf(const Cell& cell) {
  std::vector<DrawnGroup> out;
  if (cell.groups.empty()) return out;
  const auto column = [&cell](std::string_view name) -> const std::vector<double>& {
    return cell.groups.find(name)->second;
  };
  const std::vector<double>& steps = column("step");
  const double first = static_cast<double>(cell.num_steps() / 2);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] < first) continue;
    out.push_back({.admitted = column("admitted")[i] > 0,
                   .waiting = column("waiting")[i],
                   .generation = column("generation")[i],
                   .score = column("score")[i],
                   .length = column("length")[i],
                   .reward = column("reward")[i]});
  }
  return out;
}

std::vector<DrawnGroup> GroupsOf(const CellTable& table, const std::string& arm) {
  std::vector<DrawnGroup> out;
  for (const int64_t seed : table.seeds()) {
    const std::vector<DrawnGroup> more = GroupsOf(table.At(arm, seed));
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

// "2.10 (0.5, 1.9, 4.2)": mean and quantiles.
std::string Spread(std::vector<double> values, int digits) {
  if (values.empty()) return "–";
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  const auto quantile = [&values](double p) {
    return values[static_cast<size_t>(p * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return Concat(Fixed(sum / static_cast<double>(values.size()), digits), " (",
                Fixed(quantile(0.1), digits), ", ", Fixed(quantile(0.5), digits), ", ",
                Fixed(quantile(0.9), digits), ")");
}

struct Shown {
  std::string_view head;
  double (*value)(const DrawnGroup&);
  int digits;
};
constexpr std::array<Shown, 6> kShown = {{
    {"waiting", [](const DrawnGroup& group) { return group.waiting; }, 2},
    {"generation", [](const DrawnGroup& group) { return group.generation; }, 2},
    {"lag", [](const DrawnGroup& group) { return group.lag(); }, 2},
    {"admission score", [](const DrawnGroup& group) { return group.score; }, 2},
    {"length", [](const DrawnGroup& group) { return group.length; }, 1},
    {"reward", [](const DrawnGroup& group) { return group.reward; }, 2},
}};

double Correlation(const std::vector<DrawnGroup>& groups, double (*value)(const DrawnGroup&)) {
  const auto n = static_cast<double>(groups.size());
  double sum_x = 0, sum_y = 0;
  for (const DrawnGroup& group : groups) {
    sum_x += group.lag();
    sum_y += value(group);
  }
  double xx = 0, yy = 0, xy = 0;
  for (const DrawnGroup& group : groups) {
    const double x = group.lag() - sum_x / n;
    const double y = value(group) - sum_y / n;
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  return xy / std::sqrt(xx * yy);
}

Estimate CorrelationOf(const CellTable& table, const std::string& arm,
                       double (*value)(const DrawnGroup&)) {
  std::vector<double> by_seed;
  for (const int64_t seed : table.seeds()) {
    by_seed.push_back(Correlation(GroupsOf(table.At(arm, seed)), value));
  }
  return EstimateOf(by_seed);
}

}  // namespace

std::string DistributionTable(const CellTable& table) {
  std::string out =
      "Groups drawn in the second half of the steps, all seeds: mean (10th, 50th, 90th "
      "percentile).\n\n";
  out += "| arm | groups | count |";
  for (const Shown& shown : kShown) out += Concat(" ", shown.head, " |");
  out += "\n|---|---|---|";
  for (size_t i = 0; i < kShown.size(); ++i) out += "---|";
  out += "\n";
  for (const Arm& arm : table.experiment().arms) {
    const std::vector<DrawnGroup> all = GroupsOf(table, arm.name);
    for (const char* kind : {"offered", "trained", "rejected"}) {
      std::vector<DrawnGroup> groups;
      for (const DrawnGroup& group : all) {
        const bool is_in = *kind == 'o' || group.admitted == (*kind == 't');
        if (is_in) groups.push_back(group);
      }
      if (groups.empty() || (*kind == 't' && groups.size() == all.size())) continue;
      out += Concat("| ", arm.name, " | ", kind, " | ", groups.size(), " |");
      for (const Shown& shown : kShown) {
        std::vector<double> values;
        for (const DrawnGroup& group : groups) values.push_back(shown.value(group));
        out += Concat(" ", Spread(std::move(values), shown.digits), " |");
      }
      out += "\n";
    }
  }
  return out;
}

std::string LagTable(const CellTable& table) {
  constexpr int64_t kLastBin = 8;  // and all above
  std::string out = "Offered groups by lag: count; mean reward; mean length.\n\n| arm |";
  for (int64_t bin = 0; bin <= kLastBin; ++bin) {
    out += bin < kLastBin ? Concat(" ", bin, " to ", bin + 1, " |") : Concat(" from ", bin, " |");
  }
  out += " correlation of lag and reward | correlation of lag and length |\n|---|";
  for (int64_t bin = 0; bin < kLastBin + 3; ++bin) out += "---|";
  out += "\n";
  for (const Arm& arm : table.experiment().arms) {
    std::array<std::vector<DrawnGroup>, kLastBin + 1> bins;
    for (const DrawnGroup& group : GroupsOf(table, arm.name)) {
      const auto bin = static_cast<size_t>(std::min<double>(group.lag(), kLastBin));
      bins[bin].push_back(group);
    }
    out += Concat("| ", arm.name, " |");
    for (const std::vector<DrawnGroup>& groups : bins) {
      double reward = 0, length = 0;
      for (const DrawnGroup& group : groups) {
        reward += group.reward / static_cast<double>(groups.size());
        length += group.length / static_cast<double>(groups.size());
      }
      out += groups.empty()
                 ? " – |"
                 : Concat(" ", groups.size(), "; ", Fixed(reward, 2), "; ", Fixed(length, 1), " |");
    }
    for (const size_t shown : {size_t{5}, size_t{4}}) {
      out += Concat(" ", Show(CorrelationOf(table, arm.name, kShown[shown].value), 1, 2), " |");
    }
    out += "\n";
  }
  return out + "\nCorrelations are over groups, their intervals over seeds.\n";
}

}  // namespace pace
