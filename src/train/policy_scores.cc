#include "train/policy_scores.h"

#include "train/token_logprobs.h"

namespace pace {

PolicyScores ScorePolicyTokens(const TrainingNetwork& network, const Minibatch& batch,
                               double temperature) {
  PackedTokens packed;
  PolicyScores scored;
  std::vector<int64_t> rows;
  std::vector<int64_t> targets;
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const TrainSequence& sequence = *batch.sequences[i];
    const auto begin = static_cast<int64_t>(packed.tokens.size());
    // The last token only ever is a target.
    packed.tokens.insert(packed.tokens.end(), sequence.tokens.begin(), sequence.tokens.end() - 1);
    packed.lengths.push_back(static_cast<int64_t>(sequence.tokens.size()) - 1);
    const auto first = static_cast<size_t>(batch.offsets[i]);
    for (size_t token = 0; token < sequence.num_response_tokens(); ++token) {
      if (batch.mask[first + token] == 0) continue;
      const int64_t position = sequence.num_prompt_tokens + static_cast<int64_t>(token);
      rows.push_back(begin + position - 1);
      targets.push_back(sequence.tokens[static_cast<size_t>(position)]);
      scored.tokens.push_back(first + token);
    }
  }
  const at::Tensor hidden_TH = network.Hidden(packed);
  const at::Device device = hidden_TH.device();
  const TokenLogProbsResult result =
      TokenLogProbs(hidden_TH.index_select(0, at::tensor(rows).to(device)), network.head_VH(),
                    at::tensor(targets).to(device), temperature);
  scored.logprobs_N = result.logprobs_N;
  scored.entropy_N = result.entropy_N;
  return scored;
}

void PolicyScores::Spread(const at::Tensor& values_N, std::span<double> out) const {
  const at::Tensor values = values_N.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* data = values.data_ptr<double>();
  for (size_t i = 0; i < tokens.size(); ++i) out[tokens[i]] = data[i];
}

at::Tensor PolicyScores::Gather(std::span<const double> values) const {
  std::vector<double> chosen;
  for (const size_t token : tokens) chosen.push_back(values[token]);
  return at::tensor(chosen, at::kDouble).to(logprobs_N.options());
}

}  // namespace pace
