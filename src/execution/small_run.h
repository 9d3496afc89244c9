// A run so small that a test can make several: a network of random weights on
// short lists. For tests.
#ifndef PACE_EXECUTION_SMALL_RUN_H_
#define PACE_EXECUTION_SMALL_RUN_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "config/methods.h"
#include "config/settings.h"
#include "control/supply_policy.h"
#include "execution/policy.h"

namespace pace {

inline Settings SmallSettings(const std::vector<std::string>& overrides = {},
                              const std::string& method = "effective") {
  std::vector<std::string> all = {
      "run.num_steps=6", "run.evaluate_every=0", "run.checkpoint_every=0", "batch.num_groups=3",
      "batch.group_size=4", "supply.threshold=3", "model.num_layers=2", "model.hidden=16",
      "model.num_heads=2", "model.num_kv_heads=1", "model.head_dim=8", "model.ffn=24",
      "task.max_numbers=4", "generation.max_tokens=12", "prefix.min_tokens=2",
      "admission.min_observations=4", "cluster.slots=24", "cluster.train_seconds=0.05",
      "engine.slots=24", "engine.kv_mib=4", "train.learning_rate=1e-2", "task.held_out_problems=8",
      "evaluation.num_responses=2",
      // Random weights solve nothing; the penalty of long responses still teaches.
      "train.overlong_buffer=8"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const Result<Settings> settings = LoadSettings("tiny", all);
  EXPECT_TRUE(settings.ok()) << settings.status().message();
  const Result<Settings> bundled = ApplyMethod(*settings, method);
  EXPECT_TRUE(bundled.ok()) << bundled.status().message();
  return *bundled;
}

inline Policy SmallPolicy(const Settings& settings) {
  Result<Policy> policy = NewCharacterPolicy(settings.model, 5);
  EXPECT_TRUE(policy.ok()) << policy.status().message();
  return std::move(policy).value();
}

// The supply of `settings`, but stops its first groups once the trainer has advanced, unless
// a member has finished: every group that is dispatched before `until`.
class StoppingSupply final : public SupplyPolicy {
 public:
  StoppingSupply(const Settings& settings, Abandon how, GroupId until)
      : supply_(MakeSupplyPolicy(settings.supply, settings.batch.num_groups)),
        how_(how),
        until_(until) {}

  int64_t NumToStart(const SupplyView& view) const override { return supply_->NumToStart(view); }
  bool MayAbandon() const override { return true; }
  Abandon ShouldAbandon(const RunningGroup& group, const SupplyView&) const override {
    return group.id < until_ && group.num_finished == 0 ? how_ : Abandon::kNo;
  }

 private:
  const std::unique_ptr<SupplyPolicy> supply_;
  const Abandon how_;
  const GroupId until_;
};

inline bool SameWeights(const WeightSet& left, const WeightSet& right) {
  if (left.views().size() != right.views().size()) return false;
  for (const auto& [name, view] : left.views()) {
    const auto& other = right.Get(name);
    if (!std::equal(view.bytes.begin(), view.bytes.end(), other.bytes.begin(), other.bytes.end())) {
      return false;
    }
  }
  return true;
}

}  // namespace pace

#endif  // PACE_EXECUTION_SMALL_RUN_H_
