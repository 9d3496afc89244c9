#include "bench/machine_costs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "cluster/cost_model.h"

namespace pace {
namespace {

std::vector<PassSample> Passes(const RolloutCosts& costs) {
  std::vector<PassSample> passes;
  for (int i = 0; i < 60; ++i) {
    PassSample pass;
    pass.rows = 480 - 8 * i;
    pass.context_tokens = pass.rows * (10 + i);
    pass.prefill_rows = i % 7 == 0 ? 100 : 0;
    pass.seconds = costs.pass + costs.row * pass.rows + costs.context_token * pass.context_tokens +
                   costs.prefill_row * pass.prefill_rows;
    passes.push_back(pass);
  }
  return passes;
}

TEST(MachineCostsTest, FindsTheCostsThatMadeThePasses) {
  const RolloutCosts fit = FitCosts(Passes({1e-4, 2e-5, 3e-8, 1.5e-5}));
  EXPECT_NEAR(fit.pass, 1e-4, 1e-8);
  EXPECT_NEAR(fit.row, 2e-5, 1e-9);
  EXPECT_NEAR(fit.context_token, 3e-8, 1e-12);
  EXPECT_NEAR(fit.prefill_row, 1.5e-5, 1e-9);
  EXPECT_LT(fit.residual, 1e-6);
}

TEST(MachineCostsTest, NoCostIsNegative) {
  std::vector<PassSample> passes = Passes({1e-4, 2e-5, 0, 0});
  for (PassSample& pass : passes) pass.seconds -= 1e-9 * pass.context_tokens;
  const RolloutCosts fit = FitCosts(passes);
  EXPECT_EQ(fit.context_token, 0);
  EXPECT_GT(fit.row, 1e-5);
  EXPECT_GE(fit.prefill_row, 0);
}

TEST(MachineCostsTest, TheLabChargesWhatWasMeasured) {
  Settings settings = LoadSettings("tiny", {"engine.slots=64"}).value();
  const Policy policy = LoadPolicy(settings.policy).value();
  const std::string path =
      (std::filesystem::path(PACE_BINARY_DIR) / "machine_costs_test.jsonl").string();
  const RolloutCosts costs{1e-4, 2e-5, 3e-8, 1.5e-5};
  const Status applied = ApplyCosts(costs, policy, path, settings);
  ASSERT_TRUE(applied.ok()) << applied.message();
  const Result<CostModel> model = CostModel::Create(settings.model, settings.gpu, settings.cluster);
  ASSERT_TRUE(model.ok()) << model.status().message();
  for (const int64_t batch : {1, 16, 64}) {
    const double expected = 1e-4 + static_cast<double>(batch) * (2e-5 + 20 * 3e-8);
    EXPECT_NEAR(model->Decode(batch).Iteration(20 * batch), expected, 0.02 * expected);
  }
  EXPECT_NEAR(model->PrefillSeconds({.tokens = 100, .pairs = 0}), 100 * 1.5e-5, 3e-4);
}

}  // namespace
}  // namespace pace
