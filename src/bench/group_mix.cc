#include "bench/group_mix.h"

#include <optional>

#include "core/random.h"

namespace pace {
namespace {

constexpr int64_t kNumMembers = 8;
constexpr uint64_t kSeed = 1;
constexpr uint32_t kStream = 0x6d69;
constexpr double kMeanPrefixScore = 0.05;

// Draws about one response.
class ResponseDraws {
 public:
  ResponseDraws(const CounterRandom& random, int64_t response)
      : random_(random), response_(static_cast<uint64_t>(response)) {}

  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_.Uniform(response_, next_++) * static_cast<double>(n));
  }
  double Unit() { return random_.Uniform(response_, next_++); }
  double Exponential() { return random_.Exponential(response_, next_++); }

 private:
  const CounterRandom& random_;
  const uint64_t response_;
  uint64_t next_ = 0;
};

MemberSummary MakeMember(ResponseDraws draws, PolicyVersion step) {
  const PolicyVersion completed(step.step() - draws.Below(3));
  const PolicyVersion begun(completed.step() - 1 - draws.Below(3));
  std::vector<Segment> segments = {{begun, 100 + draws.Below(3900)}};
  std::optional<double> prefix_score;
  if (draws.Unit() < 0.6) {
    segments.push_back({completed, 100 + draws.Below(3900)});
    prefix_score = kMeanPrefixScore * draws.Exponential();
  }
  return MemberSummary::Of(segments, completed, prefix_score);
}

}  // namespace

std::vector<GroupSummary> MakeGroupMix(int64_t num_groups, PolicyVersion step) {
  const CounterRandom random(kSeed, kStream);
  std::vector<GroupSummary> groups;
  std::vector<MemberSummary> members;
  for (int64_t g = 0; g < num_groups; ++g) {
    members.clear();
    PolicyVersion assembled;
    for (int64_t m = 0; m < kNumMembers; ++m) {
      members.push_back(MakeMember(ResponseDraws(random, g * kNumMembers + m), step));
      assembled = std::max(assembled, members.back().completed);
    }
    groups.push_back(GroupSummary::Of(GroupId(g), assembled, members, /*num_bytes=*/1 << 16));
    groups.back().members = {};
  }
  return groups;
}

GroupSummary Later(GroupSummary group, int64_t num_steps) {
  for (PolicyVersion* version : {&group.assembled, &group.oldest, &group.stalest_completed}) {
    *version = PolicyVersion(version->step() + num_steps);
  }
  group.completed_sum += num_steps * group.num_members;
  return group;
}

}  // namespace pace
