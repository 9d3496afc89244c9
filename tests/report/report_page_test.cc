#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "core/concat.h"
#include "report/report.h"
#include "sample_runs.h"

namespace pace {
namespace {

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What stands between a chart's opening tag and the end of its figure.
std::string_view ChartNamed(std::string_view page, const std::string& name) {
  const size_t begin = page.find("data-chart=\"" + name + "\"");
  if (begin == std::string_view::npos) return "";
  return page.substr(begin, page.find("</figure>", begin) - begin);
}

TEST(ReportPageTest, FourRunsShowEveryChartWithMarks) {
  const std::string page = RenderReport({SampleRun("sync", 100), SampleRun("async", 100),
                                         SampleRun("raw", 100), SampleRun("effective", 100)},
                                        {});
  for (const char* name :
       {"occupancy", "waiting", "budget", "cutoff", "staleness-0", "staleness-3",
        "verdicts-2-waiting", "verdicts-3-generation", "verdicts-3-effective", "verdicts-3-prefix",
        "trained-1-3-waiting", "trained-1-3-prefix", "trained-1-0-waiting", "time",
        "selection-3-length", "selection-3-reward"}) {
    EXPECT_GT(CountOf(ChartNamed(page, name), "class=\"mark"), 0u) << name;
  }
  EXPECT_EQ(CountOf(ChartNamed(page, "occupancy"), "class=\"mark"), 4u);
  EXPECT_EQ(CountOf(ChartNamed(page, "budget"), "class=\"mark"), 4u);  // and what was realised
  EXPECT_EQ(CountOf(ChartNamed(page, "staleness-1"), "class=\"mark"), 3u);
  EXPECT_EQ(CountOf(ChartNamed(page, "time"), "mark reference"), 4u);
}

TEST(ReportPageTest, TrainingRunsShowWhatTheyLearn) {
  const std::vector<std::string> names = {"sums", "<products>"};
  const std::string page = RenderReport(
      {SampleTrainingRun("async", 100, names), SampleTrainingRun("effective", 100, names)}, {});
  for (const char* name :
       {"accuracy", "accuracy-time", "reward", "reward-time", "accuracy-0", "accuracy-1-time",
        "length", "length-evaluation", "entropy", "grad-norm", "clip-fraction", "kl", "ess"}) {
    EXPECT_EQ(CountOf(ChartNamed(page, name), "class=\"mark line"), 2u) << name;
  }
  EXPECT_EQ(CountOf(ChartNamed(page, "accuracy"), "class=\"mark band"), 2u);
  EXPECT_EQ(CountOf(ChartNamed(page, "accuracy"), "class=\"mark dot"), 26u);
  EXPECT_EQ(CountOf(ChartNamed(page, "reward"), "class=\"mark faint"), 2u);
  EXPECT_TRUE(Contains(ChartNamed(page, "reward-time"), ">minutes of virtual time<"));
  EXPECT_TRUE(Contains(page, "Accuracy on 2 benchmarks"));
  EXPECT_TRUE(Contains(page, "&lt;products&gt; over time"));
  EXPECT_FALSE(Contains(page, "<products>"));
  EXPECT_TRUE(Contains(page, "accuracy before\u00a0\u2192\u00a0after"));
  EXPECT_TRUE(Contains(page, "cpu, 2 threads, torch 2.13.0"));
}

TEST(ReportPageTest, RunsAreAveragedOverTheBenchmarksTheyShare) {
  const std::string page =
      RenderReport({SampleTrainingRun("async", 24, {"sums", "products"}),
                    SampleTrainingRun("effective", 24, {"sums", "dates"}), SampleRun("raw", 24)},
                   {});
  EXPECT_TRUE(Contains(page, "<figcaption>Accuracy on sums</figcaption>"));
  EXPECT_EQ(CountOf(ChartNamed(page, "accuracy"), "class=\"mark line"), 2u);
  EXPECT_EQ(CountOf(ChartNamed(page, "accuracy-2"), "class=\"mark line"), 1u);
  EXPECT_FALSE(Contains(page, "before training, against"));
  const std::string apart = RenderReport(
      {SampleTrainingRun("async", 24, {"sums"}), SampleTrainingRun("effective", 24, {"dates"})},
      {});
  EXPECT_EQ(ChartNamed(apart, "accuracy"), "");
  EXPECT_EQ(CountOf(ChartNamed(apart, "accuracy-1"), "class=\"mark line"), 1u);
}

TEST(ReportPageTest, RunsThatLearnNothingHaveNoSectionAboutIt) {
  const std::string page = RenderReport({SampleRun("async", 20)}, {});
  EXPECT_FALSE(Contains(page, "id=\"learning\""));
  EXPECT_FALSE(Contains(page, "accuracy"));
}

TEST(ReportPageTest, ManyBenchmarksMakeNoEndlessPage) {
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back("b" + std::to_string(i));
  const std::string page = RenderReport({SampleTrainingRun("effective", 24, names)}, {});
  EXPECT_TRUE(Contains(page, "Only the first 8 of 300 benchmarks are shown."));
  EXPECT_LT(page.size(), 1'000'000u);
}

TEST(ReportPageTest, ManyRunsLeaveBandsAndThinLinesOut) {
  std::vector<RunData> runs;
  for (int i = 0; i < 5; ++i) runs.push_back(SampleTrainingRun("effective", 96, {"sums"}));
  const std::string page = RenderReport(runs, {});
  EXPECT_EQ(CountOf(page, "class=\"mark band"), 0u);
  EXPECT_EQ(CountOf(page, "class=\"mark faint"), 0u);
}

TEST(ReportPageTest, TheDefaultPairStandsOpenAndOthersFold) {
  const std::string page = RenderReport({SampleRun("sync", 30), SampleRun("async", 30),
                                         SampleRun("raw", 30), SampleRun("effective", 30)},
                                        {});
  EXPECT_TRUE(Contains(page, "<h3>Async against PACE</h3>"));
  EXPECT_TRUE(Contains(page, "<summary>Async against PACE raw</summary>"));
}

TEST(ReportPageTest, NothingComesFromTheNetwork) {
  const std::string page = RenderReport({SampleRun("async", 30), SampleRun("effective", 30)}, {});
  EXPECT_EQ(CountOf(page, "http"), CountOf(page, "http://www.w3.org/2000/svg"));
  EXPECT_FALSE(Contains(page, "src="));
  EXPECT_FALSE(Contains(page, "@import"));
}

TEST(ReportPageTest, HostileNamesStayText) {
  RunData run = SampleRun("effective", 20);
  run.manifest.name = "</title><script>alert('x')</script>\"onload=\"y\xff";
  run.manifest.driver = "<img src=x>";
  run.notes = {"<b>note</b>"};
  const std::string page = RenderReport({run, SampleRun("async", 20)}, {});
  EXPECT_FALSE(Contains(page, "<script>alert"));
  EXPECT_FALSE(Contains(page, "\"onload=\""));
  EXPECT_FALSE(Contains(page, "<img"));
  EXPECT_FALSE(Contains(page, "<b>note"));
  EXPECT_FALSE(Contains(page, "\xff"));
  EXPECT_TRUE(Contains(page, "&lt;script&gt;alert(&#39;x&#39;)"));
}

TEST(ReportPageTest, RunsWithoutDecisionsSayWhatIsMissing) {
  const std::string page = RenderReport(
      {SampleRunWithoutDecisions("async", 30), SampleRunWithoutDecisions("raw", 30)}, {});
  EXPECT_GT(CountOf(ChartNamed(page, "staleness-1"), "class=\"mark"), 0u);
  EXPECT_TRUE(Contains(page, "This run recorded no decisions."));
  EXPECT_FALSE(Contains(page, "id=\"trained\""));
}

TEST(ReportPageTest, SectionsWithoutContentAreLeftOut) {
  const std::string page = RenderReport({SampleRun("async", 20)}, {});
  for (const char* id : {"verdicts", "trained", "selection", "responses", "warnings"}) {
    EXPECT_FALSE(Contains(page, Concat("id=\"", id, "\""))) << id;
  }
  EXPECT_FALSE(Contains(page, "class=\"missing\""));
}

TEST(ReportPageTest, OneRunSaysModelTaskMethodMachineAndDate) {
  RunData run = SampleTrainingRun("effective", 24, {"held_out"});
  run.directory = "runs/t1";
  run.manifest.driver = "runtime";
  run.manifest.determinism = "responses";
  run.manifest.start = 1'794'867'480;
  const std::string page = RenderReport({run}, {});
  EXPECT_TRUE(Contains(page, "<h1>t1: PACE on list_sum</h1>"));
  for (const char* fact :
       {"<b>model</b>tiny", "<b>method</b>PACE", "<b>machine</b>cpu, 2 threads, torch 2.13.0",
        "<b>began</b>2026-11-16 22:18 UTC"}) {
    EXPECT_TRUE(Contains(page, fact)) << fact;
  }
  EXPECT_FALSE(Contains(page, "effective (2)"));
  EXPECT_FALSE(Contains(page, "give the same run."));
  EXPECT_TRUE(Contains(page, "another timing, so another run"));
  run.manifest.driver = "lab";
  run.manifest.determinism = "bitwise";
  EXPECT_TRUE(Contains(RenderReport({run}, {}), "The same settings and seed give the same run."));
}

TEST(ReportPageTest, TasksOfOneNameAreNotDrawnTogether) {
  RunData sums = SampleTrainingRun("effective", 24, {"held_out"});
  RunData products = sums;
  products.settings.task.kind = TaskKind::kProduct;
  const std::string page = RenderReport({sums, products}, {});
  EXPECT_EQ(ChartNamed(page, "accuracy"), "");
  EXPECT_EQ(CountOf(ChartNamed(page, "accuracy-0"), "class=\"mark line"), 1u);
  EXPECT_TRUE(Contains(page, "held_out of product"));
}

TEST(ReportPageTest, AShortRunHasWholeStepsOnItsAxes) {
  const std::string page = RenderReport({SampleRun("effective", 3)}, {});
  EXPECT_FALSE(Contains(ChartNamed(page, "occupancy"), "class=\"tick\">0.5<"));
  EXPECT_TRUE(Contains(ChartNamed(page, "occupancy"), "class=\"tick\">1<"));
}

TEST(ReportPageTest, ATimelineShowsTrainerAndEngines) {
  RunData run = SampleRun("effective", 40);
  std::string page = RenderReport({run}, {});
  EXPECT_GE(CountOf(ChartNamed(page, "timeline-0"), "class=\"mark t-train"), 40u);
  EXPECT_FALSE(Contains(ChartNamed(page, "timeline-0"), "t-engine"));
  run = SampleTrainingRun("effective", 40, {"sums"});
  page = RenderReport({run}, {});
  EXPECT_EQ(CountOf(ChartNamed(page, "timeline-0"), "class=\"mark t-engine"), 40u);
}

ResponseRecord Response(const std::string& text) {
  ResponseRecord record;
  record.head = {.step = 3, .group = 1, .member = 2, .reward = 1, .reason = Reason::kUnderCutoff};
  record.correct = true;
  record.lag = 1.5;
  record.extracted = text;
  record.answer = text;
  record.prompt = text;
  record.turns = {{false, text}, {true, text}};
  record.picked = {"best", "under_cutoff"};
  return record;
}

TEST(ReportPageTest, ResponsesAreShownWithTheirRewardStalenessAndTurns) {
  RunData run = SampleTrainingRun("effective", 24, {"sums"});
  run.responses = {Response("first line\nsecond line")};
  run.evaluated = {Response("in evaluation")};
  run.evaluated.front().head.reason.reset();
  run.evaluated.front().benchmark = "sums";
  const std::string page = RenderReport({run}, {});
  EXPECT_TRUE(Contains(page, "<h4>Best, verdict under_cutoff, step 3</h4>"));
  EXPECT_TRUE(Contains(page, "reward 1.00, correct, lag 1.50 steps"));
  EXPECT_TRUE(Contains(page, "admitted: under_cutoff"));
  EXPECT_TRUE(Contains(page, "<pre>first line\nsecond line</pre>"));
  EXPECT_TRUE(Contains(page, "<span>tool</span>"));
  EXPECT_TRUE(Contains(page, "Responses of the last evaluation"));
  EXPECT_TRUE(Contains(page, "in evaluation"));
}

TEST(ReportPageTest, HostileResponsesAndWarningsStayText) {
  const std::string hostile =
      "</pre></article><script>alert('x')</script><img src=x onerror=\"y\">\xff\xc0\x01";
  RunData run = SampleTrainingRun("effective", 24, {"sums"});
  run.responses = {Response(hostile)};
  run.responses.front().picked = {hostile};
  run.responses.front().finish = hostile;
  run.evaluated = {Response(hostile)};
  run.evaluated.front().benchmark = hostile;
  run.warnings = {{WarningKind::kEqualRewards, 3, hostile}};
  const std::string page = RenderReport({run}, {});
  EXPECT_FALSE(Contains(page, "<script>alert"));
  EXPECT_FALSE(Contains(page, "<img"));
  EXPECT_FALSE(Contains(page, "onerror=\""));
  EXPECT_FALSE(Contains(page, "\xff"));
  EXPECT_FALSE(Contains(page, "\xc0"));
  EXPECT_TRUE(Contains(page, "&lt;script&gt;alert"));
}

TEST(ReportPageTest, WarningsStandAtTheTopOnceForEachKind) {
  RunData run = SampleRun("effective", 20);
  run.warnings = {{WarningKind::kWarmingUp, 0, "PACE is warming up: 8 of 32 scores"},
                  {WarningKind::kWarmingUp, 1, "PACE is warming up: 16 of 32 scores"},
                  {WarningKind::kOverBudget, 3, "step 3 rejected 39 of 51 groups"}};
  const std::string page = RenderReport({run}, {});
  EXPECT_FALSE(Contains(page, "8 of 32"));
  EXPECT_TRUE(Contains(page, "16 of 32 scores <span class=\"note\">(step 1, said 2 times)"));
  EXPECT_LT(page.find("step 3 rejected 39"), page.find("id=\"summary\""));
}

TEST(ReportPageTest, AnEmptyRunIsAPageAndNotACrash) {
  RunData run;
  run.manifest.name = "empty";
  const std::string page = RenderReport({run}, {});
  EXPECT_TRUE(Contains(page, "no step was finished"));
  EXPECT_EQ(CountOf(page, "class=\"mark"), 0u);
}

TEST(ReportPageTest, ValuesOfAnySizeGiveFiniteCoordinates) {
  RunData run = SampleRun("effective", 5);
  for (const double value : {1e308, -1e308, 0.0}) {
    run.metrics.AddRow(run.metrics.steps().back() + 1000000000000);
    run.metrics.Set("pool/occupancy", value);
    run.metrics.Set("time/step", value);
    run.metrics.Set("staleness/generation/mean", value);
    run.metrics.Set("staleness/waiting_pool/mean", value);
    run.metrics.Set("staleness/waiting_assembly/mean", value);
    run.metrics.Set("time", value);
    run.metrics.Set("train/reward", value);
    run.evaluations.AddRow(run.metrics.steps().back());
    run.evaluations.Set("time", value);
    run.evaluations.Set("eval/sums/mean@4", value);
    run.evaluations.Set("eval/sums/mean@4_half_width", value);
  }
  for (DecisionRow& row : run.decisions) row.waiting = 1e30f;
  run.decisions.front().waiting = -1e30f;
  const std::string page = RenderReport({run}, {});
  EXPECT_FALSE(Contains(page, "nan"));
  EXPECT_FALSE(Contains(page, "=\"inf"));
}

TEST(ReportPageTest, ALongRunMakesNoLargerPage) {
  const std::string page = RenderReport({SampleRun("sync", 300), SampleRun("async", 300),
                                         SampleRun("raw", 300), SampleRun("effective", 300)},
                                        {});
  EXPECT_LT(page.size(), 1'000'000u);
  const std::string longer = RenderReport({SampleRun("sync", 5000), SampleRun("async", 5000),
                                           SampleRun("raw", 5000), SampleRun("effective", 5000)},
                                          {});
  EXPECT_LT(static_cast<double>(longer.size()), 1.5 * static_cast<double>(page.size()));
  EXPECT_TRUE(Contains(longer, "Each point is the mean of up to 16 steps."));
}

TEST(ReportPageTest, ReferencesMayComeFromTheCaller) {
  RunData run = SampleRun("async", 20);
  run.settings.compare.reference.clear();
  EXPECT_EQ(CountOf(RenderReport({run}, {}), "mark reference"), 0u);
  EXPECT_EQ(CountOf(RenderReport({run}, {{{"async", 12.5}}}), "mark reference"), 1u);
}

TEST(ReportPageTest, WritesTheFileOrSaysWhyNot) {
  const std::string path = testing::TempDir() + "report_page_test.html";
  const std::vector<RunData> runs = {SampleRun("async", 20)};
  ASSERT_TRUE(WriteReport(runs, path).ok());
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, RenderReport(runs, {}));
  EXPECT_EQ(WriteReport(runs, testing::TempDir() + "no/such/dir/report.html").code(),
            StatusCode::kNotFound);
  EXPECT_EQ(WriteReport({}, path).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pace
