#include "report/summary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/sections.h"

namespace pace {
namespace {

RunData RunOf(const std::string& name, AdmissionKind policy, double threshold, double waiting,
              double seconds) {
  RunData run;
  run.manifest.name = name;
  run.manifest.driver = "runtime";
  run.settings.admission.policy = policy;
  run.settings.supply.threshold = threshold;
  for (int64_t step = 0; step < 4; ++step) {
    run.metrics.AddRow(step);
    run.metrics.Set("staleness/waiting/mean", waiting + (step % 2 == 0 ? 0.5 : -0.5));
    run.metrics.Set("time/step", seconds);
    run.metrics.Set("admission/offered", 20);
    run.metrics.Set("admission/rejected", static_cast<double>(step));
    run.metrics.Set("cost/tokens_generated", 1000.0 * static_cast<double>(step + 1));
    run.metrics.Set("cost/tokens_never_trained", 250.0 * static_cast<double>(step + 1));
  }
  return run;
}

std::vector<RunData> ThreeRuns() {
  return {RunOf("s", AdmissionKind::kAcceptAll, 0, 0, 90),
          RunOf("a", AdmissionKind::kAcceptAll, 8, 6, 25),
          RunOf("p", AdmissionKind::kPace, 8, 1.5, 30)};
}

TEST(SummaryTest, AveragesTheSettledHalfAndTakesTotalsFromTheEnd) {
  const RunSummary s = Summarize(ThreeRuns())[2];
  EXPECT_DOUBLE_EQ(s.waiting.value(), 1.5);
  EXPECT_DOUBLE_EQ(s.rejected_share.value(), 5.0 / 40);
  EXPECT_DOUBLE_EQ(s.never_trained_share.value(), 0.25);
  EXPECT_FALSE(s.generation.has_value());
}

TEST(SummaryTest, TokensLeftInThePoolWereNeverTrainedOn) {
  std::vector<RunData> runs = ThreeRuns();
  runs[2].metrics.Set("cost/tokens_in_pool", 400);
  EXPECT_DOUBLE_EQ(Summarize(runs)[2].never_trained_share.value(), 0.35);
}

TEST(SummaryTest, RejectionStandsBesideItsBudget) {
  std::vector<RunData> runs = ThreeRuns();
  runs[2].metrics.Set("admission/budget", 0.02);
  const std::vector<RunSummary> summaries = Summarize(runs);
  EXPECT_NE(SummarySentences(summaries)[2].find(
                "It rejected 12\u00a0% of what it drew, at a budget of 2.0\u00a0%."),
            std::string::npos)
      << SummarySentences(summaries)[2];
  EXPECT_NE(SummaryTable(summaries).find("<th scope=\"col\">budget</th>"), std::string::npos);
  EXPECT_EQ(SummaryTable(Summarize(ThreeRuns())).find(">budget<"), std::string::npos);
}

TEST(SummaryTest, ARunOnACpuHasNoGpuSeconds) {
  std::vector<RunData> runs = ThreeRuns();
  for (RunData& run : runs) run.metrics.Set("cost/per_trained_prompt", 3);
  EXPECT_NE(SummaryTable(Summarize(runs)).find(">GPU s / prompt<"), std::string::npos);
  for (RunData& run : runs) run.manifest.device = "cpu";
  EXPECT_EQ(SummaryTable(Summarize(runs)).find("GPU"), std::string::npos);
  EXPECT_EQ(SummaryTable(Summarize(runs)).find(">4.00<"), std::string::npos) << "steps are whole";
}

TEST(SummaryTest, SecondsOfAModelledClusterAreVirtual) {
  std::vector<RunData> runs = ThreeRuns();
  for (RunData& run : runs) run.manifest.driver = "lab";
  EXPECT_NE(SummaryTable(Summarize(runs)).find(">virtual s / step<"), std::string::npos);
  EXPECT_NE(SummarySentences(Summarize(runs))[1].find("A step takes 25.0 virtual s."),
            std::string::npos);
}

TEST(SummaryTest, TheBaselineIsTheFirstAsynchronousRunWithoutFilter) {
  std::vector<RunData> runs = ThreeRuns();
  EXPECT_EQ(BaselineOf(Summarize(runs)), 1u);
  runs.erase(runs.begin() + 1);
  EXPECT_EQ(BaselineOf(Summarize(runs)), 0u);
  runs.erase(runs.begin());
  EXPECT_FALSE(BaselineOf(Summarize(runs)).has_value());
}

TEST(SummaryTest, SentencesCompareWithTheBaseline) {
  const std::vector<std::string> sentences = SummarySentences(Summarize(ThreeRuns()));
  EXPECT_EQ(sentences[1],
            "a: trained groups have waited 6.00 steps. A step takes 25.0 s. 25\u00a0% of its "
            "tokens are never trained on.");
  EXPECT_EQ(sentences[2],
            "p: trained groups have waited 1.50 steps, 75\u00a0% less than a (6.00). A step takes "
            "30.0 s, 1.20 times a. 25\u00a0% of its tokens are never trained on.");
}

void Evaluate(RunData& run, int64_t version, double mean) {
  run.evaluations.AddRow(version);
  run.evaluations.Set("eval/sums/mean@4", mean);
  run.evaluations.Set("eval/sums/mean@4_half_width", 0.034);
}

TEST(SummaryTest, AccuracyComesFirstAndIsComparedWithTheBaseline) {
  std::vector<RunData> runs = ThreeRuns();
  Evaluate(runs[1], 0, 0.21);
  Evaluate(runs[1], 4, 0.5);
  Evaluate(runs[2], 0, 0.21);
  Evaluate(runs[2], 2, 0.7);
  Evaluate(runs[2], 4, 0.57);
  const std::vector<RunSummary> summaries = Summarize(runs);
  const std::vector<std::string> sentences = SummarySentences(summaries);
  EXPECT_EQ(
      sentences[1].find("a: it answers 50.0\u00a0% \u00b1\u00a03.4 of sums correctly, 21.0\u00a0% "
                        "before training. Trained groups have waited 6.00 steps."),
      0u)
      << sentences[1];
  EXPECT_EQ(
      sentences[2].find("p: it answers 57.0\u00a0% \u00b1\u00a03.4 of sums correctly, 21.0\u00a0% "
                        "before training, against 50.0\u00a0% in a. Trained"),
      0u)
      << sentences[2];
  const std::string table = SummaryTable(summaries);
  EXPECT_NE(table.find("21.0\u00a0% \u2192 57.0\u00a0%"), std::string::npos) << table;
  EXPECT_EQ(SummaryTable(Summarize(ThreeRuns())).find("accuracy"), std::string::npos);
}

TEST(SummaryTest, ARunFirstEvaluatedLaterHasNoBefore) {
  std::vector<RunData> runs = ThreeRuns();
  Evaluate(runs[2], 2, 0.3);
  Evaluate(runs[2], 4, 0.5);
  const RunSummary summary = Summarize(runs)[2];
  EXPECT_FALSE(summary.accuracy_before.has_value());
  EXPECT_EQ(summary.accuracy_after, 0.5);
}

TEST(SummaryTest, OtherBatchesAreNamedWhereTimesAreCompared) {
  std::vector<RunData> runs = ThreeRuns();
  runs[0].settings.batch.num_groups = 48;
  const std::vector<RunSummary> summaries = Summarize(runs);
  EXPECT_NE(SummarySentences(summaries)[0].find(
                "A step of 48 groups takes 90.0 s, 3.60 times a with its 12 groups."),
            std::string::npos)
      << SummarySentences(summaries)[0];
  EXPECT_DOUBLE_EQ(summaries[0].seconds_per_prompt.value(), 90.0 / 48);
}

TEST(SummaryTest, NamesAreNeverEmptyAndNeverTwice) {
  std::vector<RunData> runs = ThreeRuns();
  runs[0].manifest.name = runs[1].manifest.name = "same";
  runs[2].manifest.name = "";
  const std::vector<RunSummary> summaries = Summarize(runs);
  EXPECT_EQ(summaries[0].name, "same");
  EXPECT_EQ(summaries[1].name, "same (2)");
  EXPECT_EQ(summaries[2].name, "run");
  EXPECT_EQ(summaries[2].title, "PACE");
}

TEST(SummaryTest, MethodsAreNamedAsComparisonsNameThem) {
  std::vector<RunData> runs = ThreeRuns();
  EXPECT_EQ(MethodLabel(runs[0].settings), "sync");
  EXPECT_EQ(MethodLabel(runs[1].settings), "async");
  EXPECT_EQ(MethodLabel(runs[2].settings), "effective");
  runs[2].settings.admission.policy = AdmissionKind::kStaleK;
  runs[2].settings.admission.k = 4;
  EXPECT_EQ(MethodLabel(runs[2].settings), "stale-4");
}

using Pairs = std::vector<std::pair<size_t, size_t>>;

TEST(TrainedPairsTest, TheUnfilteredRunMeetsTheEffectiveOneFirst) {
  std::vector<RunData> runs = ThreeRuns();
  runs.insert(runs.begin(), RunOf("r", AdmissionKind::kStaleK, 8, 1, 20));
  EXPECT_EQ(TrainedPairs(Summarize(runs), 8), (Pairs{{2, 3}, {2, 0}, {2, 1}}));
  EXPECT_EQ(TrainedPairs(Summarize(runs), 1), (Pairs{{2, 3}}));
}

TEST(TrainedPairsTest, WithoutThemTheFirstTwoRunsMeet) {
  const std::vector<RunData> runs = {RunOf("r", AdmissionKind::kStaleK, 8, 1, 20),
                                     RunOf("q", AdmissionKind::kStaleK, 8, 1, 20)};
  EXPECT_EQ(TrainedPairs(Summarize(runs), 8), (Pairs{{0, 1}}));
  EXPECT_TRUE(TrainedPairs(Summarize({runs[0]}), 8).empty());
}

}  // namespace
}  // namespace pace
