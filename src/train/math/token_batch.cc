#include "train/math/token_batch.h"

#include <algorithm>
#include <unordered_map>

namespace pace {

int64_t SequenceLayout::num_policy_tokens(size_t sequence) const {
  int64_t count = 0;
  for (size_t token = begin(sequence); token < end(sequence); ++token) count += mask[token] != 0;
  return count;
}

int64_t SequenceLayout::num_policy_tokens() const {
  return std::count_if(mask.begin(), mask.end(), [](uint8_t bit) { return bit != 0; });
}

Status SequenceLayout::Validate() const {
  if (offsets.empty()) {
    return mask.empty() ? Status::Ok() : InvalidArgument("offsets: must not be empty");
  }
  if (offsets.front() != 0) return InvalidArgument("offsets[0] = ", offsets[0], ": must be 0");
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      return InvalidArgument("offsets[", i, "] = ", offsets[i], ": must be >= the one before");
    }
  }
  if (offsets.back() != static_cast<int64_t>(mask.size())) {
    return InvalidArgument("offsets end at ", offsets.back(), ": must end at the ", mask.size(),
                           " tokens of the mask");
  }
  return CheckLength("groups", groups.size(), "sequences", num_sequences(), true);
}

std::vector<std::vector<size_t>> GroupMembers(const SequenceLayout& layout) {
  std::vector<std::vector<size_t>> members;
  std::unordered_map<int64_t, size_t> index;
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    size_t at = members.size();
    if (!layout.groups.empty()) {
      at = index.try_emplace(layout.groups[sequence], members.size()).first->second;
    }
    if (at == members.size()) members.emplace_back();
    members[at].push_back(sequence);
  }
  return members;
}

std::vector<size_t> SequenceOfTokens(const SequenceLayout& layout) {
  std::vector<size_t> sequences(layout.num_tokens());
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      sequences[token] = sequence;
    }
  }
  return sequences;
}

Status TokenBatch::Validate() const {
  PACE_RETURN_IF_ERROR(layout.Validate());
  const size_t num = num_tokens();
  PACE_RETURN_IF_ERROR(CheckLength("logprobs", logprobs.size(), "tokens", num, false));
  PACE_RETURN_IF_ERROR(CheckLength("frozen_logprobs", frozen_logprobs.size(), "tokens", num, true));
  PACE_RETURN_IF_ERROR(
      CheckLength("rollout_logprobs", rollout_logprobs.size(), "tokens", num, true));
  PACE_RETURN_IF_ERROR(
      CheckLength("proximal_logprobs", proximal_logprobs.size(), "tokens", num, true));
  PACE_RETURN_IF_ERROR(CheckLength("advantages", advantages.size(), "tokens", num, false));
  PACE_RETURN_IF_ERROR(
      CheckLength("importance_weights", importance_weights.size(), "tokens", num, true));
  return CheckLength("rewards", rewards.size(), "sequences", layout.num_sequences(), true);
}

Status CheckLength(std::string_view array, size_t length, std::string_view what, size_t expected,
                   bool may_be_empty) {
  if (length == expected || (may_be_empty && length == 0)) return Status::Ok();
  return InvalidArgument(array, " has ", length, " entries: must have one for each of the ",
                         expected, " ", what);
}

}  // namespace pace
