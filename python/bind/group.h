// Group: a finished group with everything it owns, as Python holds it.
#ifndef PACE_PYTHON_BIND_GROUP_H_
#define PACE_PYTHON_BIND_GROUP_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/decision.h"
#include "core/staleness.h"
#include "record/run_writer.h"
#include "record/step_metrics.h"

namespace pace::python {

class Group {
 public:
  // One response as Python gives it: completed, [(version, num_tokens), ...], prefix score.
  using Response =
      std::tuple<int64_t, std::vector<std::pair<int64_t, int64_t>>, std::optional<double>>;

  // Raises if a rule of the trace format is broken.
  Group(int64_t id, const std::vector<Response>& members, double reward, int64_t num_bytes);
  // A copy of what a policy was shown.
  explicit Group(const GroupSummary& summary);
  Group(const Group& other);
  Group& operator=(const Group&) = delete;

  const GroupSummary& summary() const { return summary_; }
  std::vector<TraceMember> trace() const;
  PayloadStats payload() const;

 private:
  std::vector<MemberSummary> members_;
  std::vector<std::vector<Segment>> segments_;
  GroupSummary summary_;
  double reward_ = 0;
};

}  // namespace pace::python

#endif  // PACE_PYTHON_BIND_GROUP_H_
