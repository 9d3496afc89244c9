#include "compare/results_pictures.h"

#include <gtest/gtest.h>

#include "core/concat.h"

namespace pace {
namespace {

Cell Learned(const std::string& arm, int64_t seed, double last) {
  Cell cell;
  cell.id = {arm, seed};
  for (const std::string_view name : kStepColumns) cell.steps[std::string(name)] = {1, 1};
  cell.evaluations = {{.step = 0, .time = 0, .accuracy = 0.1},
                      {.step = 2, .time = 8, .accuracy = last + 0.01 * static_cast<double>(seed)}};
  return cell;
}

FinishedComparison WithClaims(const std::string& claims) {
  FinishedComparison out;
  out.experiment = ParseExperiment(Concat("base: tiny\nseeds: 2\narms: [sync, async, effective]\n",
                                          "claims:\n", claims),
                                   "made.yaml")
                       .value();
  for (const int64_t seed : {1, 2}) {
    out.cells.push_back(Learned("sync", seed, 0.5));
    out.cells.push_back(Learned("async", seed, 0.3));
    out.cells.push_back(Learned("effective", seed, 0.4));
  }
  return out;
}

TEST(ResultsPicturesTest, SharesAndCurvesOfAComparisonThatClaimsAShare) {
  const auto pictures = ResultsPictures({WithClaims(
      "  - {says: half, recovered: {value: final, of: effective, from: async, to: sync}}\n")});
  ASSERT_EQ(pictures.size(), 3u);
  EXPECT_EQ(pictures[0].name, "results-recovered");
  EXPECT_NE(pictures[0].svg.find("made, effective, last accuracy"), std::string::npos);
  EXPECT_NE(pictures[0].svg.find("0.50 ["), std::string::npos) << pictures[0].svg;
  EXPECT_EQ(pictures[1].name, "results-made-updates");
  EXPECT_EQ(pictures[2].name, "results-made-time");
  for (const ResultsPicture& picture : pictures) {
    EXPECT_TRUE(picture.svg.starts_with("<svg xmlns=")) << picture.svg;
    EXPECT_TRUE(picture.svg.ends_with("</svg>\n")) << picture.svg;
  }
  for (const char* arm : {"sync", "async", "effective"}) {
    EXPECT_NE(pictures[2].svg.find(Concat(">", arm, "<")), std::string::npos) << arm;
  }
  EXPECT_NE(PicturesText(pictures, "images").find("](images/results-made-time.svg)"),
            std::string::npos);
}

TEST(ResultsPicturesTest, OthersAreNotDrawn) {
  const auto pictures =
      ResultsPictures({WithClaims("  - {says: best, value: final, of: sync, over: async}\n")});
  EXPECT_TRUE(pictures.empty());
  EXPECT_EQ(PicturesText(pictures, "images"), "");
}

}  // namespace
}  // namespace pace
