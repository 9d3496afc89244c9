#include "report/group_values.h"

#include "report/series.h"

namespace pace {

Sample ValuesOf(const RunData& run, const GroupQuantity& quantity, GroupsOf which) {
  Sample values;
  const size_t first_row = FirstSettledRow(run.metrics);
  const int64_t first_step =
      first_row < run.metrics.num_rows() ? run.metrics.steps()[first_row] : 0;
  for (const DecisionRow& row : run.decisions) {
    if (row.step < first_step) continue;
    if (which != GroupsOf::kAll && row.trained() != (which == GroupsOf::kRetained)) continue;
    if (quantity.field != nullptr) {
      values.push_back(row.*quantity.field);
    } else if (row.prefix_score.has_value()) {
      values.push_back(*row.prefix_score);
    }
  }
  return values;
}

}  // namespace pace
