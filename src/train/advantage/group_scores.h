// What the estimators that compare the members of a group share.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_ADVANTAGE_GROUP_SCORES_H_
#define PACE_TRAIN_ADVANTAGE_GROUP_SCORES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "train/advantage/advantages.h"

namespace pace {

// Mean and deviation of a group's rewards.
struct GroupStatistics {
  double mean = 0;
  double deviation = 0;  // unbiased (n - 1); 0 for one member
  // All are the same number: differences from the mean are exactly 0, which
  // subtracting a rounded mean would not give.
  bool equal = false;
};
GroupStatistics StatisticsOf(std::span<const size_t> members, std::span<const double> rewards);

// The advantage of each sequence, given to all its policy tokens; returns are
// the same.
Advantages Broadcast(const SequenceLayout& layout, std::span<const double> scores);

// token_rewards, or each sequence's reward on its last policy token; 0 where
// the mask is 0.
std::vector<double> TokenRewards(const RewardBatch& batch);

// (x - mean) / sqrt(variance + 1e-8) over all policy tokens, variance unbiased.
// 0 on all where they are equal, or fewer than two.
void Whiten(const SequenceLayout& layout, std::vector<double>& values);

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_GROUP_SCORES_H_
