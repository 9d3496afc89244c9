#include "train/math/reduction.h"

#include <cmath>
#include <limits>

namespace pace {
namespace {

bool IsSequenceMode(ReductionMode mode) {
  return mode != ReductionMode::kTokenMean && mode != ReductionMode::kTokenSum;
}

// The weight of each policy token of a sequence that has `length` of them.
double WeightOf(const ReductionOptions& options, const MinibatchTotals& totals, double length) {
  const auto num_tokens = static_cast<double>(totals.num_tokens);
  const auto num_sequences = static_cast<double>(totals.num_sequences);
  switch (options.mode) {
    case ReductionMode::kTokenMean:
      return options.scale / num_tokens;
    case ReductionMode::kTokenSum:
      return options.scale;
    case ReductionMode::kSequenceMeanTokenSum:
      return options.scale / num_sequences;
    case ReductionMode::kSequenceMeanTokenMean:
      return options.scale / num_sequences / length;
    case ReductionMode::kSequenceMeanTokenSumNorm:
      return options.scale / num_sequences / options.horizon;
  }
  return 0;
}

// Only M2PO's published code reduces this way, and only its own modes.
ReductionWeights WeighLikeEarlyVerl(const SequenceLayout& layout, const MinibatchTotals& totals,
                                    const ReductionOptions& options) {
  MinibatchTotals counted = totals;
  const bool per_batch = options.mode == ReductionMode::kSequenceMeanTokenSumNorm;
  counted.num_sequences = per_batch ? 1 : static_cast<int64_t>(layout.num_sequences());
  ReductionWeights weights;
  weights.token.resize(layout.num_tokens());
  weights.padding = ReductionWeights::Padding::kInLossAndGradient;
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    const auto length = static_cast<double>(layout.num_policy_tokens(sequence));
    const double weight = WeightOf(options, counted, length);
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      // 0 * (1 / 0) is the NaN that the peer gets.
      weights.token[token] = (layout.mask[token] != 0 ? 1.0 : 0.0) * weight;
    }
  }
  return weights;
}

void ApplyPaddingRule(const SequenceLayout& layout, const MinibatchTotals& totals,
                      const ReductionOptions& options, ReductionWeights& weights) {
  if (options.padding == PaddingRule::kVerl) {
    if (IsSequenceMode(options.mode)) weights.padding = ReductionWeights::Padding::kInLoss;
    if (totals.num_tokens == 0 && options.mode != ReductionMode::kTokenSum) {
      weights.offset = std::numeric_limits<double>::quiet_NaN();
    }
  }
  if (options.padding == PaddingRule::kRoll && options.mode == ReductionMode::kTokenMean) {
    weights.padding = ReductionWeights::Padding::kInLossAndGradient;
    weights.token.assign(layout.num_tokens(), WeightOf(options, totals, 0));
  }
}

}  // namespace

std::optional<ReductionMode> ReductionModeFromName(std::string_view name) {
  for (size_t i = 1; i < kReductionNames.size(); ++i) {
    if (kReductionNames[i] == name) return static_cast<ReductionMode>(i - 1);
  }
  return std::nullopt;
}

std::string_view NameOf(ReductionMode mode) {
  return kReductionNames[static_cast<size_t>(mode) + 1];
}

MinibatchTotals CountTotals(const SequenceLayout& layout) {
  MinibatchTotals totals;
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    const int64_t length = layout.num_policy_tokens(sequence);
    totals.num_tokens += length;
    totals.num_sequences += length > 0;
  }
  return totals;
}

Status ReductionOptions::Validate() const {
  if (mode == ReductionMode::kSequenceMeanTokenSumNorm && !(horizon > 0)) {
    return InvalidArgument("reduction.horizon = ", horizon,
                           ": must be positive in seq-mean-token-sum-norm (the response budget)");
  }
  if (!(scale > 0) || !std::isfinite(scale)) {
    return InvalidArgument("reduction.scale = ", scale, ": must be positive");
  }
  return Status::Ok();
}

Result<ReductionWeights> WeighTokens(const SequenceLayout& layout, const MinibatchTotals& totals,
                                     const ReductionOptions& options) {
  PACE_RETURN_IF_ERROR(layout.Validate());
  PACE_RETURN_IF_ERROR(options.Validate());
  const MinibatchTotals here = CountTotals(layout);
  if (here.num_tokens > totals.num_tokens || here.num_sequences > totals.num_sequences) {
    return InvalidArgument("reduction: the minibatch counts ", totals.num_tokens, " tokens in ",
                           totals.num_sequences, " sequences, less than this part of it (",
                           here.num_tokens, " in ", here.num_sequences, ")");
  }
  if (options.padding == PaddingRule::kEarlyVerl) {
    return WeighLikeEarlyVerl(layout, totals, options);
  }
  ReductionWeights weights;
  weights.token.resize(layout.num_tokens());
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    const int64_t length = layout.num_policy_tokens(sequence);
    if (length == 0) continue;
    const double weight = WeightOf(options, totals, static_cast<double>(length));
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] != 0) weights.token[token] = weight;
    }
  }
  ApplyPaddingRule(layout, totals, options, weights);
  return weights;
}

}  // namespace pace
