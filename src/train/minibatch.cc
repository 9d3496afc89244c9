#include "train/minibatch.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/random.h"

namespace pace {
namespace {

constexpr uint32_t kShuffleStream = 0x6D696E69;  // "mini"

// Appends the entries of one sequence, where the array is there at all.
template <typename T>
void AppendRange(const std::vector<T>& from, size_t begin, size_t end, std::vector<T>& to) {
  if (from.empty()) return;
  to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
            from.begin() + static_cast<std::ptrdiff_t>(end));
}

std::vector<size_t> LongestFirst(std::span<const int64_t> lengths) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b;
  });
  return order;
}

}  // namespace

Status TrainSequence::Validate(int64_t vocab_size) const {
  if (num_prompt_tokens < 1) return InvalidArgument("num_prompt_tokens: must be at least 1");
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  if (num_tokens <= num_prompt_tokens) {
    return InvalidArgument("num_prompt_tokens = ", num_prompt_tokens, " of ", num_tokens,
                           ": the response must hold at least one token");
  }
  const size_t expected = num_response_tokens();
  PACE_RETURN_IF_ERROR(CheckLength("mask", mask.size(), "response token", expected, false));
  PACE_RETURN_IF_ERROR(
      CheckLength("rollout_logprobs", rollout_logprobs.size(), "response token", expected, false));
  PACE_RETURN_IF_ERROR(CheckLength("versions", versions.size(), "response token", expected, false));
  for (const TokenId id : tokens) {
    if (id < 0 || id >= vocab_size) {
      return InvalidArgument("token ", id, ": the vocabulary has ", vocab_size, " ids");
    }
  }
  return Status::Ok();
}

Minibatch::Minibatch(std::vector<const TrainSequence*> members) : sequences(std::move(members)) {
  offsets.push_back(0);
  for (const TrainSequence* sequence : sequences) {
    offsets.push_back(offsets.back() + static_cast<int64_t>(sequence->num_response_tokens()));
    groups.push_back(sequence->group);
    rewards.push_back(sequence->reward);
    shaped_rewards.push_back(sequence->reward);
    mask.insert(mask.end(), sequence->mask.begin(), sequence->mask.end());
    rollout_logprobs.insert(rollout_logprobs.end(), sequence->rollout_logprobs.begin(),
                            sequence->rollout_logprobs.end());
    versions.insert(versions.end(), sequence->versions.begin(), sequence->versions.end());
  }
}

Minibatch Minibatch::Part(std::span<const size_t> indices) const {
  std::vector<const TrainSequence*> members;
  for (const size_t index : indices) members.push_back(sequences[index]);
  Minibatch part(std::move(members));
  // What was made of the sequences since: masks may have shrunk.
  part.mask.clear();
  part.shaped_rewards.clear();
  for (const size_t index : indices) {
    const auto begin = static_cast<size_t>(offsets[index]);
    const auto end = static_cast<size_t>(offsets[index + 1]);
    AppendRange(mask, begin, end, part.mask);
    AppendRange(advantages, begin, end, part.advantages);
    AppendRange(proximal_logprobs, begin, end, part.proximal_logprobs);
    AppendRange(importance_weights, begin, end, part.importance_weights);
    AppendRange(initial_logprobs, begin, end, part.initial_logprobs);
    AppendRange(values, begin, end, part.values);
    AppendRange(returns, begin, end, part.returns);
    AppendRange(token_rewards, begin, end, part.token_rewards);
    part.shaped_rewards.push_back(shaped_rewards[index]);
  }
  return part;
}

std::vector<int64_t> Minibatch::ForwardLengths() const {
  std::vector<int64_t> lengths;
  for (const TrainSequence* sequence : sequences) {
    lengths.push_back(static_cast<int64_t>(sequence->tokens.size()) - 1);
  }
  return lengths;
}

std::vector<std::vector<size_t>> SplitByGroups(std::span<const TrainSequence> sequences,
                                               int64_t count,
                                               std::optional<uint64_t> shuffle_seed) {
  PACE_CHECK(count > 0, "count = ", count);
  std::map<int64_t, int64_t> order;
  std::vector<int64_t> groups;  // by first appearance
  for (const TrainSequence& sequence : sequences) {
    if (order.emplace(sequence.group, 0).second) groups.push_back(sequence.group);
  }
  if (shuffle_seed.has_value()) {
    const CounterRandom keys(*shuffle_seed, kShuffleStream);
    std::sort(groups.begin(), groups.end(), [&](int64_t a, int64_t b) {
      return std::pair(keys.Bits(static_cast<uint64_t>(a)), a) <
             std::pair(keys.Bits(static_cast<uint64_t>(b)), b);
    });
  }
  const auto num_groups = static_cast<int64_t>(groups.size());
  for (int64_t i = 0; i < num_groups; ++i) order[groups[static_cast<size_t>(i)]] = i;
  const int64_t num_parts = std::min(count, num_groups);
  std::vector<std::vector<size_t>> parts(static_cast<size_t>(num_parts));
  for (size_t i = 0; i < sequences.size(); ++i) {
    const int64_t part = order[sequences[i].group] * num_parts / num_groups;
    parts[static_cast<size_t>(part)].push_back(i);
  }
  return parts;
}

std::vector<size_t> WithDifferentRewards(std::span<const TrainSequence* const> sequences) {
  std::map<int64_t, double> first_rewards;
  std::set<int64_t> different;
  for (const TrainSequence* sequence : sequences) {
    const auto first = first_rewards.try_emplace(sequence->group, sequence->reward).first;
    if (first->second != sequence->reward) different.insert(sequence->group);
  }
  std::vector<size_t> indices;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (different.empty() || different.contains(sequences[i]->group)) indices.push_back(i);
  }
  return indices;
}

std::vector<std::vector<size_t>> PackSequences(std::span<const int64_t> lengths,
                                               int64_t token_budget) {
  PACE_CHECK(token_budget > 0, "token_budget = ", token_budget);
  std::vector<std::vector<size_t>> bins;
  std::vector<int64_t> room;
  for (const size_t sequence : LongestFirst(lengths)) {
    PACE_CHECK(lengths[sequence] > 0, "length = ", lengths[sequence]);
    size_t bin = 0;
    while (bin < bins.size() && room[bin] < lengths[sequence]) ++bin;
    if (bin == bins.size()) {
      bins.emplace_back();
      room.push_back(token_budget);
    }
    bins[bin].push_back(sequence);
    room[bin] -= lengths[sequence];
  }
  for (std::vector<size_t>& bin : bins) std::sort(bin.begin(), bin.end());
  std::sort(bins.begin(), bins.end(),
            [](const auto& a, const auto& b) { return a.front() < b.front(); });
  return bins;
}

std::vector<std::vector<size_t>> ShareSequences(std::span<const int64_t> lengths, int64_t count) {
  PACE_CHECK(count > 0, "count = ", count);
  std::vector<std::vector<size_t>> shares(
      std::min(static_cast<size_t>(count), std::max<size_t>(lengths.size(), 1)));
  std::vector<int64_t> tokens(shares.size());
  for (const size_t sequence : LongestFirst(lengths)) {
    const auto least =
        static_cast<size_t>(std::min_element(tokens.begin(), tokens.end()) - tokens.begin());
    shares[least].push_back(sequence);
    tokens[least] += lengths[sequence];
  }
  for (std::vector<size_t>& share : shares) std::sort(share.begin(), share.end());
  return shares;
}

std::vector<std::vector<size_t>> PackEvenly(std::span<const int64_t> lengths, int64_t token_budget,
                                            int64_t count) {
  const auto tokens_of = [&](const std::vector<size_t>& bin) {
    return std::transform_reduce(bin.begin(), bin.end(), int64_t{0}, std::plus<>(),
                                 [&](size_t sequence) { return lengths[sequence]; });
  };
  std::vector<std::vector<size_t>> bins;
  if (!lengths.empty()) bins = ShareSequences(lengths, count);
  const bool fits = std::ranges::all_of(bins, [&](const std::vector<size_t>& bin) {
    return bin.size() == 1 || tokens_of(bin) <= token_budget;
  });
  if (!fits) bins = PackSequences(lengths, token_budget);
  PACE_CHECK(std::ssize(bins) <= count, bins.size(), " bins instead of at most ", count);
  std::ranges::sort(bins, [&](const std::vector<size_t>& a, const std::vector<size_t>& b) {
    const int64_t tokens = tokens_of(a);
    const int64_t others = tokens_of(b);
    return tokens != others ? tokens > others : a.front() < b.front();
  });
  return bins;
}

}  // namespace pace
