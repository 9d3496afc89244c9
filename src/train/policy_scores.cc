#include "train/policy_scores.h"

#include "train/token_logprobs.h"

namespace pace {

PolicyRows ForwardPolicyRows(const TrainingNetwork& network, const Minibatch& batch) {
  PackedTokens packed;
  PolicyRows out;
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
      out.tokens.push_back(first + token);
    }
  }
  const at::Tensor hidden_TH = network.Hidden(packed);
  const at::Device device = hidden_TH.device();
  out.hidden_NH = hidden_TH.index_select(0, at::tensor(rows).to(device));
  out.targets_N = at::tensor(targets).to(device);
  return out;
}

PolicyScores ScorePolicyTokens(const TrainingNetwork& network, const Minibatch& batch,
                               double temperature) {
  PolicyScores scored{ForwardPolicyRows(network, batch), {}, {}};
  const TokenLogProbsResult result =
      TokenLogProbs(scored.hidden_NH, network.head_VH(), scored.targets_N, temperature);
  scored.logprobs_N = result.logprobs_N;
  scored.entropy_N = result.entropy_N;
  return scored;
}

void PolicyRows::Spread(const at::Tensor& values_N, std::span<double> out) const {
  const at::Tensor values = values_N.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* data = values.data_ptr<double>();
  for (size_t i = 0; i < tokens.size(); ++i) out[tokens[i]] = data[i];
}

at::Tensor PolicyRows::Gather(std::span<const double> values) const {
  std::vector<double> chosen;
  for (const size_t token : tokens) chosen.push_back(values[token]);
  const bool is_double = hidden_NH.scalar_type() == at::kDouble;
  return at::tensor(chosen, at::kDouble)
      .to(hidden_NH.device(), is_double ? at::kDouble : at::kFloat);
}

}  // namespace pace
