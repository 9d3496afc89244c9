#include "compare/results.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "compare/claims.h"
#include "compare/problem_bootstrap.h"
#include "compare/statistics.h"

namespace pace {
namespace {

struct Shown {
  std::string_view name;
  std::string_view head;
  double factor;
  int digits;
};

constexpr auto kAccuracy = std::to_array<Shown>({
    {"base", "before training, %", 100, 1},
    {"best", "best, %", 100, 1},
    {"final", "final, %", 100, 1},
    {"area", "mean over updates, %", 100, 1},
    {"time_area", "mean over the baseline's time, %", 100, 1},
    {"equal_time", "best at equal time, %", 100, 1},
    {"equal_gpu", "best at equal GPU time, %", 100, 1},
    {"equal_tokens", "best at equal tokens, %", 100, 1},
});
// Where results per problem, and greedy responses, were asked for.
constexpr auto kProblems = std::to_array<Shown>({
    {"final", "final, mean@k, %", 100, 1},
    {"pass", "final, pass@k, %", 100, 1},
    {"greedy", "final, greedy, %", 100, 1},
});
constexpr auto kArrived = std::to_array<Shown>({
    {"updates50", "updates to 50 % of Sync's gain", 1, 1},
    {"updates80", "updates to 80 %", 1, 1},
    {"time50", "s to 50 %", 1, 0},
    {"time80", "s to 80 %", 1, 0},
    {"reach95", "time to 95 % over Sync's", 1, 2},
});
constexpr auto kRun = std::to_array<Shown>({
    {"step_seconds", "s per step", 1, 1},
    {"waiting", "waiting staleness", 1, 2},
    {"generation", "generation staleness", 1, 2},
    {"scored", "with prefix score, %", 100, 0},
    {"occupancy", "occupancy", 1, 1},
    {"rejected", "rejected, %", 100, 0},
    {"length_ratio", "trained/offered length", 1, 2},
    {"length", "trained length", 1, 1},
    {"entropy", "entropy", 1, 3},
    {"gpu_hours", "GPU hours", 1, 2},
    {"mega_tokens", "tokens, millions", 1, 2},
    {"never_trained", "rejected or lost tokens, %", 100, 0},
    {"wasted", "tokens never trained, %", 100, 0},
});
constexpr auto kTime = std::to_array<Shown>({
    {"step_seconds", "s per step", 1, 1},
    {"wait_seconds", "waiting for data", 1, 1},
    {"train_seconds", "training", 1, 1},
    {"sync_seconds", "weight sync", 1, 1},
    {"rescore_seconds", "visible rescoring", 1, 2},
    {"other_seconds", "other", 1, 1},
    {"hidden_seconds", "hidden rescoring", 1, 2},
    {"prompt_seconds", "s per trained prompt", 1, 2},
    {"token_seconds", "ms per trained token", 1000, 2},
});
constexpr auto kTools = std::to_array<Shown>({
    {"turns", "turns", 1, 2},
    {"tool_calls", "tool calls", 1, 2},
    {"tool_success_begin", "successful calls, first step, %", 100, 0},
    {"tool_success", "successful calls, second half, %", 100, 0},
    {"tool_seconds", "tool time, s", 1, 2},
});
constexpr auto kCompared = std::to_array<Shown>({
    {"best", "best", 100, 1},
    {"final", "final", 100, 1},
    {"area", "mean over updates", 100, 1},
    {"time_area", "mean over the baseline's time", 100, 1},
    {"equal_time", "best at equal time", 100, 1},
});

std::string ShowValue(const CellTable& table, std::string_view arm, const Shown& column) {
  if (!IsArrival(column.name)) {
    return Show(table.Of(arm, column.name), column.factor, column.digits);
  }
  return ShowArrivals(table.SeedValues(arm, column.name), column.factor, column.digits);
}

std::string HeadOf(std::span<const Shown> columns, std::string_view first) {
  std::string out = Concat("| ", first, " |");
  for (const Shown& column : columns) out += Concat(" ", column.head, " |");
  out += "\n|---|";
  for (size_t i = 0; i < columns.size(); ++i) out += "---|";
  return out + "\n";
}

std::string ArmTable(const CellTable& table, std::span<const Shown> columns) {
  std::string out = HeadOf(columns, "arm");
  for (const Arm& arm : table.experiment().arms) {
    out += Concat("| ", arm.name, " |");
    for (const Shown& column : columns) {
      out += Concat(" ", ShowValue(table, arm.name, column), " |");
    }
    out += "\n";
  }
  return out;
}

// Which arms' runs end before the baseline's; empty without any.
std::string HeldNote(const CellTable& table) {
  std::string arms;
  for (const Arm& arm : table.experiment().arms) {
    const auto num_held =
        std::ranges::count_if(table.SeedValues(arm.name, "time_area"), &SeedValue::held);
    if (num_held == 0) continue;
    arms += Concat(arms.empty() ? "" : ", ", arm.name, " (", num_held, " of ", table.seeds().size(),
                   ")");
  }
  if (arms.empty()) return "";
  return Concat(
      "\nRuns that end before the baseline's are held at their last accuracy in the mean ",
      "over the baseline's time: ", arms, ".\n");
}

// " from 101 on"; empty where seeds count from 1.
std::string SeedRange(const Experiment& experiment) {
  return experiment.first_seed == 1 ? "" : Concat(" from ", experiment.first_seed, " on");
}

// Mean accuracy at each evaluation.
std::string CurveTable(const CellTable& table) {
  const Cell& first = table.At(table.experiment().arms.front().name, table.seeds().front());
  if (first.evaluations.empty()) return "";
  std::string out = "| accuracy after updates, % |";
  for (const CellEvaluation& evaluation : first.evaluations)
    out += Concat(" ", evaluation.step, " |");
  out += "\n|---|";
  for (size_t i = 0; i < first.evaluations.size(); ++i) out += "---|";
  out += "\n";
  for (const Arm& arm : table.experiment().arms) {
    out += Concat("| ", arm.name, " |");
    for (size_t i = 0; i < first.evaluations.size(); ++i) {
      std::vector<double> values;
      for (const int64_t seed : table.seeds()) {
        const std::vector<CellEvaluation>& evaluations = table.At(arm.name, seed).evaluations;
        if (i < evaluations.size()) values.push_back(evaluations[i].accuracy);
      }
      out += Concat(" ", Show(EstimateOf(values), 100, 1), " |");
    }
    out += "\n";
  }
  return out + "\n";
}

std::string DifferenceTable(const CellTable& table) {
  const std::string& baseline = table.experiment().baseline;
  std::string out = HeadOf(kCompared, Concat("difference from ", baseline, ", points"));
  for (const Arm& arm : table.experiment().arms) {
    if (arm.name == baseline) continue;
    out += Concat("| ", arm.name, " |");
    for (const Shown& column : kCompared) {
      const Estimate difference = PairedDifference(table.Values(arm.name, column.name),
                                                   table.Values(baseline, column.name));
      const bool clear = Against(difference, 0) != Finding::kUndecided;
      out += Concat(" ", Show(difference, column.factor, column.digits), clear ? " \\*" : "", " |");
    }
    out += "\n";
  }
  const size_t comparisons = (table.experiment().arms.size() - 1) * kCompared.size();
  return out + Concat("\n\\* The 95 % interval excludes 0. The table makes ", comparisons,
                      " uncorrected comparisons; if no method had an effect, ",
                      Fixed(0.05 * static_cast<double>(comparisons), 1),
                      " of them would be marked on average.\n");
}

std::string ClaimTable(const CellTable& table) {
  std::string out =
      "| claim | measure | paper | bound | measured | verdict |\n|---|---|---|---|---|---|\n";
  const std::vector<ClaimResult> results = ExamineAll(table);
  for (size_t i = 0; i < results.size(); ++i) {
    const Claim& claim = table.experiment().claims[i];
    const ClaimResult& result = results[i];
    out += Concat("| ", claim.says, " | ", MeasureText(claim), " | ",
                  claim.paper.has_value() ? Concat(*claim.paper) : "–", " | ", BoundText(claim),
                  " | ", FoundText(claim, result), " | ", Name(result.finding), " |\n");
  }
  return out;
}

// Claims with intervals over problems, too; empty where there are none.
std::string ProblemTable(const CellTable& table) {
  const std::vector<Claim>& claims = table.experiment().claims;
  const std::vector<std::optional<Estimate>> found = BootstrapOverProblems(table, claims, {});
  std::string rows;
  for (size_t i = 0; i < claims.size(); ++i) {
    if (!found[i].has_value()) continue;
    rows +=
        Concat("| ", claims[i].says, " | ", MeasureText(claims[i]), " | ",
               Show(Examine(table, claims[i]).found, 1, 3), " | ", Show(*found[i], 1, 3), " |\n");
  }
  if (rows.empty()) return "";
  return "| claim | measure | interval over seeds | interval over seeds and problems |\n"
         "|---|---|---|---|\n" +
         rows + "\n";
}

// "Ranking by best accuracy, %: pace 48.5, async 46.9."
std::string OrderLine(const CellTable& table, std::string_view value, std::string_view says) {
  std::vector<std::pair<double, std::string>> order;
  for (const Arm& arm : table.experiment().arms) {
    order.emplace_back(-table.Of(arm.name, value).mean, arm.name);
  }
  std::sort(order.begin(), order.end());
  std::string out = Concat("Ranking by ", says, ": ");
  for (size_t i = 0; i < order.size(); ++i) {
    out += Concat(i > 0 ? ", " : "", order[i].second, " ", Fixed(-100 * order[i].first, 1));
  }
  return out + ".\n";
}

// Means over seeds of one column, step by step.
std::vector<double> MeanColumn(const CellTable& table, const std::string& arm,
                               std::string_view name) {
  std::vector<double> sums;
  for (const int64_t seed : table.seeds()) {
    const std::vector<double>& values = table.At(arm, seed).steps.find(name)->second;
    sums.resize(std::max(sums.size(), values.size()));
    for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
  }
  for (double& sum : sums) sum /= static_cast<double>(table.seeds().size());
  return sums;
}

void FillEvaluations(const CellTable& table, const std::string& arm, MetricsTable& out) {
  const Cell& first = table.At(arm, table.seeds().front());
  for (size_t i = 0; i < first.evaluations.size(); ++i) {
    std::vector<double> accuracies;
    double time = 0;
    double length = 0;
    for (const int64_t seed : table.seeds()) {
      const CellEvaluation& evaluation = table.At(arm, seed).evaluations[i];
      accuracies.push_back(evaluation.accuracy);
      time += evaluation.time / static_cast<double>(table.seeds().size());
      length += evaluation.length / static_cast<double>(table.seeds().size());
    }
    const Estimate accuracy = EstimateOf(accuracies);
    out.AddRow(first.evaluations[i].step);
    out.Set("time", time);
    out.Set("eval/held_out/mean@k", accuracy.mean);
    out.Set("eval/held_out/mean@k_half_width",
            std::isfinite(accuracy.half_width) ? accuracy.half_width : 0);
    out.Set("eval/held_out/length", length);
  }
}

}  // namespace

std::string ResultsMarkdown(const CellTable& table) {
  const Experiment& experiment = table.experiment();
  std::string out =
      Concat("## ", experiment.title.empty() ? experiment.name : experiment.title, "\n\n");
  if (!experiment.paper.empty())
    out += Concat("Published counterpart: ", experiment.paper, ".\n\n");
  out += Concat("`pace compare ", experiment.name, "`: ", experiment.arms.size(), " arms, ",
                table.seeds().size(), " seeds", SeedRange(experiment),
                ". Values are means over seeds ± half of the 95 % interval.\n\n");
  if (table.seeds().empty()) return out + "No seed has been run in all arms yet.\n";
  const Cell& first = table.At(experiment.arms.front().name, table.seeds().front());
  if (!first.evaluations.empty()) {
    out += ArmTable(table, kAccuracy) + HeldNote(table) + "\n" + CurveTable(table);
    const CellEvaluation& last = first.evaluations.back();
    if (last.pass.has_value() || last.greedy.has_value()) out += ArmTable(table, kProblems) + "\n";
    if (experiment.FindArm("sync") != nullptr) out += ArmTable(table, kArrived) + "\n";
  }
  if (!first.evaluations.empty() && experiment.arms.size() > 2) {
    out += OrderLine(table, "best", "best accuracy, %") +
           OrderLine(table, "area", "mean accuracy over updates, %") + "\n";
  }
  out += ArmTable(table, kRun) + "\n" + ArmTable(table, kTime) + "\n";
  if (first.steps.contains(kToolColumns.front())) out += ArmTable(table, kTools) + "\n";
  if (!experiment.baseline.empty() && experiment.arms.size() > 1 && !first.evaluations.empty()) {
    out += DifferenceTable(table) + "\n";
  }
  if (experiment.keep_groups) {
    out += DistributionTable(table) + "\n" + LagTable(table) + "\n";
  }
  if (!experiment.claims.empty()) out += ClaimTable(table) + "\n";
  if (experiment.keep_problems) out += ProblemTable(table);
  return out;
}

Result<std::vector<RunData>> MeanRuns(const CellTable& table) {
  std::vector<RunData> runs;
  if (table.seeds().empty()) return InvalidArgument("no seed has been run in every arm");
  for (const Arm& arm : table.experiment().arms) {
    const int64_t seed = table.seeds().front();
    PACE_ASSIGN_OR_RETURN(Settings settings, SettingsOf(table.experiment(), {arm.name, seed}, {}));
    RunData run;
    run.directory = arm.name;
    run.manifest.name = arm.name;
    run.manifest.driver = "lab";
    run.manifest.method = arm.method;
    run.settings = std::move(settings);
    const size_t num_steps = table.At(arm.name, seed).num_steps();
    std::vector<std::pair<std::string_view, std::vector<double>>> columns;
    for (const auto& [name, values] : table.At(arm.name, seed).steps) {
      columns.emplace_back(name, MeanColumn(table, arm.name, name));
    }
    for (size_t step = 0; step < num_steps; ++step) {
      run.metrics.AddRow(static_cast<int64_t>(step));
      for (const auto& [name, values] : columns) {
        if (std::isfinite(values[step])) run.metrics.Set(name, values[step]);
      }
    }
    FillEvaluations(table, arm.name, run.evaluations);
    run.notes.push_back(Concat("means over ", table.seeds().size(), " seeds"));
    runs.push_back(std::move(run));
  }
  return runs;
}

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

struct DrawnColumn {
  std::string_view head;
  double (*value)(const DrawnGroup&);
  int digits;
};
constexpr std::array<DrawnColumn, 6> kDrawnColumns = {{
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
  for (const DrawnColumn& shown : kDrawnColumns) out += Concat(" ", shown.head, " |");
  out += "\n|---|---|---|";
  for (size_t i = 0; i < kDrawnColumns.size(); ++i) out += "---|";
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
      for (const DrawnColumn& shown : kDrawnColumns) {
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
      out +=
          Concat(" ", Show(CorrelationOf(table, arm.name, kDrawnColumns[shown].value), 1, 2), " |");
    }
    out += "\n";
  }
  return out + "\nCorrelations are over groups, their intervals over seeds.\n";
}

}  // namespace pace
