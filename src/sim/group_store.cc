#include "sim/group_store.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pace {

GroupStore::GroupStore(const Workload& workload, int64_t group_size, bool keep_versions)
    : workload_(workload), group_size_(static_cast<size_t>(group_size)) {
  table_.keep_runs = keep_versions;
}

size_t GroupStore::Start(GroupId group, PromptIndex prompt, size_t engine, double length) {
  if (free_.empty()) {
    free_.push_back(slots_.size());
    slots_.emplace_back();
    table_.Resize(slots_.size() * group_size_);
  }
  const size_t index = free_.back();
  free_.pop_back();
  const PromptTraits prompt_traits = workload_.Prompt(prompt);
  slots_[index] = {.group = group,
                   .prompt = prompt,
                   .drift_factor = prompt_traits.drift_factor,
                   .engine = engine,
                   .num_finished = 0,
                   .assembled = Seconds(0),
                   .used = true};
  slots_of_[group.value()] = index;

  std::vector<KeptResponse> kept;
  if (const auto found = kept_.find(prompt.value()); found != kept_.end()) {
    kept = std::move(found->second);
    kept_.erase(found);
  }
  const auto prompt_tokens = static_cast<int32_t>(workload_.options().prompt_tokens);
  for (size_t member = 0; member < group_size_; ++member) {
    const size_t at = index * group_size_ + member;
    Response& response = table_.responses[at];
    if (member < kept.size() && !kept[member].segments.empty()) {
      response = kept[member].response;
      response.uncached = response.context;
      table_.runs[at] = VersionRuns(std::move(kept[member].segments));
      continue;
    }
    const auto number = static_cast<int64_t>(member);
    const ResponseTraits traits = workload_.Response(prompt, number, prompt_traits, length);
    response = {};
    response.num_tokens = static_cast<int32_t>(traits.num_tokens);
    response.num_turns = static_cast<int32_t>(traits.num_turns);
    response.context = prompt_tokens;
    // The members share one prefill of their prompt.
    response.uncached = member == 0 ? prompt_tokens : 0;
    response.correct = workload_.Correct(prompt, number, prompt_traits, traits);
  }
  return index;
}

void GroupStore::Keep(size_t slot) {
  std::vector<KeptResponse>& kept = kept_[slots_[slot].prompt.value()];
  kept.clear();
  for (size_t member = 0; member < group_size_; ++member) {
    const size_t at = slot * group_size_ + member;
    const Response& response = table_.responses[at];
    const bool begun = response.state != ResponseState::kFinished && response.has_runs;
    kept.push_back({response, begun ? table_.runs[at].segments() : std::vector<Segment>()});
  }
}

void GroupStore::Free(size_t slot) {
  PACE_CHECK(slots_[slot].used, "slot ", slot, " is free already");
  slots_of_.erase(slots_[slot].group.value());
  slots_[slot].used = false;
  for (size_t member = 0; member < group_size_; ++member) {
    table_.responses[slot * group_size_ + member].state = ResponseState::kUnused;
  }
  free_.push_back(slot);
}

PayloadStats GroupStore::Stats(size_t slot) const {
  double length = 0, correct = 0, turns = 0;
  for (const Response& response : members(slot)) {
    length += response.num_tokens;
    correct += response.correct ? 1 : 0;
    turns += response.num_turns;
  }
  const auto count = static_cast<double>(group_size_);
  return {.length = length / count, .reward = correct / count, .turns = turns / count};
}

int64_t GroupStore::NumTokens(size_t slot) const {
  int64_t sum = 0;
  for (const Response& response : members(slot)) sum += response.num_done;
  return sum;
}

bool GroupStore::HasEqualRewards(size_t slot) const {
  const std::span<const Response> all = members(slot);
  return std::all_of(all.begin(), all.end(),
                     [&](const Response& response) { return response.correct == all[0].correct; });
}

PassSize GroupStore::TrainingPass(size_t slot) const {
  PassSize pass;
  for (const Response& response : members(slot)) pass += PassSize::Extending(0, response.context);
  return pass;
}

}  // namespace pace
