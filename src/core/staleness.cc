#include "core/staleness.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pace {

VersionRuns::VersionRuns(std::vector<Segment> segments) : segments_(std::move(segments)) {}

void VersionRuns::Append(PolicyVersion version, int64_t num_tokens) {
  PACE_CHECK(num_tokens > 0, "num_tokens = ", num_tokens);
  if (segments_.empty()) {
    segments_.push_back({version, num_tokens});
    return;
  }
  PACE_CHECK(version >= segments_.back().version, "versions only grow: ", version, " after ",
             segments_.back().version);
  if (segments_.back().version == version) {
    segments_.back().num_tokens += num_tokens;
  } else {
    segments_.push_back({version, num_tokens});
  }
}

int64_t NumTokens(std::span<const Segment> segments) {
  int64_t num_tokens = 0;
  for (const Segment& segment : segments) num_tokens += segment.num_tokens;
  return num_tokens;
}

double GenerationStaleness(std::span<const Segment> segments, PolicyVersion completed) {
  // Products and sums stay below 2^53 for any run we can name, so this sum is
  // exact and the order of segments cannot matter.
  double lag_sum = 0;
  int64_t num_tokens = 0;
  for (const Segment& segment : segments) {
    lag_sum += static_cast<double>(Lag(segment.version, completed)) *
               static_cast<double>(segment.num_tokens);
    num_tokens += segment.num_tokens;
  }
  PACE_CHECK(num_tokens > 0, "a response without policy tokens has no staleness");
  return lag_sum / static_cast<double>(num_tokens);
}

MemberSummary MemberSummary::Of(std::span<const Segment> segments, PolicyVersion completed,
                                std::optional<double> prefix_score) {
  MemberSummary member;
  member.completed = completed;
  member.generation = GenerationStaleness(segments, completed);
  member.prefix_score = prefix_score;
  member.oldest = segments.front().version;
  for (const Segment& segment : segments) {
    member.oldest = std::min(member.oldest, segment.version);
    member.num_tokens += segment.num_tokens;
  }
  return member;
}

GroupSummary GroupSummary::Of(GroupId id, PolicyVersion assembled,
                              std::span<const MemberSummary> members, int64_t num_bytes) {
  PACE_CHECK(!members.empty(), "group ", id, " has no members");
  GroupSummary group;
  group.id = id;
  group.assembled = assembled;
  group.num_members = static_cast<int64_t>(members.size());
  group.num_bytes = num_bytes;
  group.members = members;
  group.oldest = members.front().oldest;
  group.stalest_completed = members.front().completed;
  group.stalest_generation = members.front().generation;
  double generation_sum = 0;
  double prefix_sum = 0;
  int64_t num_scored = 0;
  for (const MemberSummary& member : members) {
    group.completed_sum += member.completed.step();
    group.num_tokens += member.num_tokens;
    group.oldest = std::min(group.oldest, member.oldest);
    generation_sum += member.generation;
    if (member.prefix_score.has_value()) {
      prefix_sum += *member.prefix_score;
      ++num_scored;
    }
    const double stalest_lag =
        group.stalest_generation + static_cast<double>(Lag(group.stalest_completed, assembled));
    if (member.generation + static_cast<double>(Lag(member.completed, assembled)) > stalest_lag) {
      group.stalest_completed = member.completed;
      group.stalest_generation = member.generation;
    }
  }
  group.generation = generation_sum / static_cast<double>(group.num_members);
  if (num_scored > 0) group.prefix_score = prefix_sum / static_cast<double>(num_scored);
  return group;
}

double GroupSummary::Waiting(PolicyVersion step) const {
  return static_cast<double>(step.step() * num_members - completed_sum) /
         static_cast<double>(num_members);
}

double GroupSummary::WaitingAssembly() const {
  return Waiting(assembled);
}

double GroupSummary::WaitingPool(PolicyVersion step) const {
  return static_cast<double>(Lag(assembled, step));
}

double GroupSummary::MaxMemberLag(PolicyVersion step) const {
  return stalest_generation + static_cast<double>(Lag(stalest_completed, step));
}

}  // namespace pace
