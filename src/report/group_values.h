// What is drawn about groups: the four staleness quantities, and what their
// payload says.
#ifndef PACE_REPORT_GROUP_VALUES_H_
#define PACE_REPORT_GROUP_VALUES_H_

#include <array>
#include <string_view>

#include "record/run_reader.h"
#include "report/distribution.h"

namespace pace {

struct GroupQuantity {
  std::string_view name;  // in data-chart
  std::string_view caption;
  std::string_view axis;
  // Null for the prefix score, which not every group has.
  float DecisionRow::* field;
  bool needs_scores = false;  // only there when the policy computes scores
};

inline constexpr std::array<GroupQuantity, 4> kStalenessQuantities = {{
    {"waiting", "Waiting staleness", "steps", &DecisionRow::waiting, false},
    {"generation", "Generation staleness", "steps", &DecisionRow::generation, false},
    {"effective", "Effective staleness", "score", &DecisionRow::score, true},
    {"prefix", "Prefix score", "mean |log-prob change|", nullptr, true},
}};

inline constexpr std::array<GroupQuantity, 3> kPayloadQuantities = {{
    {"length", "Response length", "policy tokens, mean of the group", &DecisionRow::length, false},
    {"reward", "Reward", "mean reward of the group", &DecisionRow::reward, false},
    {"turns", "Turns", "turns, mean of the group", &DecisionRow::turns, false},
}};

enum class GroupsOf { kRetained, kRejected, kAll };

// One value per group that has it, over the settled half of the run.
Sample ValuesOf(const RunData& run, const GroupQuantity& quantity, GroupsOf which);

}  // namespace pace

#endif  // PACE_REPORT_GROUP_VALUES_H_
