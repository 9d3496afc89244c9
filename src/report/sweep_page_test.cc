#include "report/sweep_page.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

TEST(SweepPageTest, ShowsEverySettingInChartsAndTable) {
  const SweepPage page{.title = "small: supply.threshold",
                       .advice = "take supply.threshold=2 & go",
                       .points = {{.setting = "supply.threshold=2",
                                   .seconds = 1.5,
                                   .waiting = 0.5,
                                   .on_front = true,
                                   .is_best = true},
                                  {.setting = "supply.threshold=<8>", .seconds = 2, .waiting = 4}}};
  const std::string html = RenderSweepPage(page);
  EXPECT_NE(html.find("take supply.threshold=2 &amp; go"), std::string::npos);
  EXPECT_NE(html.find("data-chart=\"sweep-waiting\""), std::string::npos);
  EXPECT_NE(html.find("data-chart=\"sweep-wasted\""), std::string::npos);
  EXPECT_EQ(html.find("<8>"), std::string::npos);
  EXPECT_NE(html.find("mark f1"), std::string::npos);
}

TEST(SweepPageTest, OnePointIsEnough) {
  EXPECT_FALSE(
      RenderSweepPage({.title = "t", .advice = "a", .points = {{.setting = "s"}}}).empty());
}

}  // namespace
}  // namespace pace
