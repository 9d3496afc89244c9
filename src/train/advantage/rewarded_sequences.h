// Sequences of one group or several, with numbers that a reader can follow.
#ifndef PACE_TRAIN_ADVANTAGE_REWARDED_SEQUENCES_H_
#define PACE_TRAIN_ADVANTAGE_REWARDED_SEQUENCES_H_

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "train/advantage/advantages.h"

namespace pace {

// A sequence per row of `masks`; its reward stands on its last policy token.
struct RewardedSequences {
  std::vector<std::vector<uint8_t>> masks = {};
  std::vector<double> rewards = {};
  std::vector<int64_t> groups = {};
  std::vector<double> values = {};
  std::vector<double> baselines = {};

  Result<Advantages> Estimate(std::string_view name, const NamedSettings& settings = {}) const {
    std::vector<int64_t> offsets = {0};
    std::vector<uint8_t> mask;
    for (const std::vector<uint8_t>& row : masks) {
      mask.insert(mask.end(), row.begin(), row.end());
      offsets.push_back(static_cast<int64_t>(mask.size()));
    }
    RewardBatch batch;
    batch.layout = {.offsets = offsets, .groups = groups, .mask = mask};
    batch.rewards = rewards;
    batch.values = values;
    batch.baselines = baselines;
    PACE_ASSIGN_OR_RETURN(const auto made, MakeAdvantageEstimator(name, settings));
    return made->Estimate(batch);
  }

  // The advantages, which must not be an error.
  std::vector<double> Of(std::string_view name, const NamedSettings& settings = {}) const {
    const Result<Advantages> result = Estimate(name, settings);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? result->advantages : std::vector<double>();
  }
};

inline void ExpectNear(const std::vector<double>& ours, const std::vector<double>& expected) {
  ASSERT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], expected[i], 1e-5) << i;
}

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_REWARDED_SEQUENCES_H_
