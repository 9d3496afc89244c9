#include "train/rank_messages.h"

#include "ranks/byte_message.h"

namespace pace {
namespace {

void Write(const Status& status, MessageWriter& out) {
  out.Number(static_cast<int64_t>(status.code()));
  out.Text(status.message());
}

Status ReadStatus(MessageReader& in) {
  const auto code = static_cast<StatusCode>(in.Number<int64_t>());
  return {code, std::string(in.Text())};
}

}  // namespace

std::string EncodeSequences(std::span<const TrainSequence> sequences) {
  MessageWriter out;
  out.Number(static_cast<int64_t>(sequences.size()));
  for (const TrainSequence& sequence : sequences) {
    out.Array(sequence.tokens);
    out.Number(sequence.num_prompt_tokens);
    out.Array(sequence.mask);
    out.Array(sequence.rollout_logprobs);
    out.Array(sequence.versions);
    out.Number(sequence.group);
    out.Number(sequence.reward);
    out.Number(static_cast<uint8_t>(sequence.baseline.has_value() ? 1 : 0));
    out.Number(sequence.baseline.value_or(0));
  }
  return out.Take();
}

Result<std::vector<TrainSequence>> DecodeSequences(std::string_view bytes) {
  MessageReader in(bytes);
  const auto count = in.Number<int64_t>();
  std::vector<TrainSequence> sequences;
  while (!in.failed() && static_cast<int64_t>(sequences.size()) < count) {
    TrainSequence& sequence = sequences.emplace_back();
    sequence.tokens = in.Array<TokenId>();
    sequence.num_prompt_tokens = in.Number<int64_t>();
    sequence.mask = in.Array<uint8_t>();
    sequence.rollout_logprobs = in.Array<float>();
    sequence.versions = in.Array<int64_t>();
    sequence.group = in.Number<int64_t>();
    sequence.reward = in.Number<double>();
    const bool has_baseline = in.Number<uint8_t>() != 0;
    const auto baseline = in.Number<double>();
    if (has_baseline) sequence.baseline = baseline;
  }
  if (!in.complete()) return DataLoss("a batch between ranks: its bytes are cut off");
  return sequences;
}

void UpdateSums::Add(const UpdateSums& part) {
  if (status.ok()) status = part.status;
  loss += part.loss;
  MergeMetrics(part.metrics, metrics);
}

std::string EncodeSums(const UpdateSums& sums) {
  MessageWriter out;
  Write(sums.status, out);
  out.Number(sums.loss);
  out.Number(static_cast<int64_t>(sums.metrics.size()));
  for (const Metric& metric : sums.metrics) {
    out.Text(metric.name);
    out.Number(metric.value);
    out.Number(metric.weight);
  }
  return out.Take();
}

Result<UpdateSums> DecodeSums(std::string_view bytes) {
  MessageReader in(bytes);
  UpdateSums sums;
  sums.status = ReadStatus(in);
  sums.loss = in.Number<double>();
  const auto count = in.Number<int64_t>();
  while (!in.failed() && static_cast<int64_t>(sums.metrics.size()) < count) {
    Metric& metric = sums.metrics.emplace_back();
    metric.name = in.Text();
    metric.value = in.Number<double>();
    metric.weight = in.Number<double>();
  }
  if (!in.complete()) return DataLoss("sums of another rank: their bytes are cut off");
  return sums;
}

std::string EncodeHeader(const RestoreHeader& header) {
  MessageWriter out;
  Write(header.status, out);
  out.Number(header.num_updates);
  out.Number(header.kl_coefficient);
  return out.Take();
}

Result<RestoreHeader> DecodeHeader(std::string_view bytes) {
  MessageReader in(bytes);
  RestoreHeader header;
  header.status = ReadStatus(in);
  header.num_updates = in.Number<int64_t>();
  header.kl_coefficient = in.Number<double>();
  if (!in.complete()) return DataLoss("the state of rank 0: its bytes are cut off");
  return header;
}

}  // namespace pace
