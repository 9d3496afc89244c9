// `models`: the decoder, over its paged cache, in float32 and bfloat16.
#include <cmath>

#include "conformance/models_kind_checks.h"
#include "core/concat.h"
#include "model/decoder.h"

namespace pace::models {
namespace {

int64_t BlocksFor(int64_t num_tokens) {
  return (num_tokens + kBlockTokens - 1) / kBlockTokens;
}

// One sequence at a time, from the first block on.
class OneSequence {
 public:
  static Result<OneSequence> Create(const ModelFolder& folder, DeviceKind device, Dtype dtype,
                                    int64_t max_tokens) {
    const DecoderOptions options{
        .dtype = dtype, .num_blocks = BlocksFor(max_tokens), .num_threads = 1};
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder,
                          CreateDecoder(device, folder.config, options));
    PACE_ASSIGN_OR_RETURN(std::shared_ptr<const DecoderWeights> weights,
                          decoder->Prepare(folder.weights));
    decoder->Install(std::move(weights));
    return OneSequence(std::move(decoder), options.num_blocks);
  }

  // Of every token but the first, given those before it.
  Result<std::vector<double>> Logprobs(const std::vector<TokenId>& tokens) {
    Pass pass = Whole(tokens);
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      pass.scores.push_back({.row = static_cast<int64_t>(i), .target = tokens[i + 1]});
    }
    PACE_ASSIGN_OR_RETURN(const PassResult result, decoder_->Run(pass));
    return std::vector<double>(result.logprobs.begin(), result.logprobs.end());
  }

  Result<std::vector<int64_t>> Greedy(const std::vector<TokenId>& tokens, size_t num_tokens) {
    std::vector<int64_t> chosen;
    Pass pass = Whole(tokens);
    while (chosen.size() < num_tokens) {
      SampleRequest request;
      request.row = static_cast<int64_t>(pass.tokens.size()) - 1;
      request.options.temperature = 0;
      pass.samples = {request};
      PACE_ASSIGN_OR_RETURN(const PassResult result, decoder_->Run(pass));
      const TokenId next = result.samples.front().token;
      chosen.push_back(next);
      const int64_t start = pass.chunks.front().start + pass.chunks.front().num_tokens;
      pass = At(start, {next});
    }
    return chosen;
  }

 private:
  OneSequence(std::unique_ptr<Decoder> decoder, int64_t num_blocks) : decoder_(std::move(decoder)) {
    for (int64_t block = 0; block < num_blocks; ++block) {
      blocks_.push_back(static_cast<BlockId>(block));
    }
  }

  Pass Whole(const std::vector<TokenId>& tokens) const { return At(0, tokens); }

  Pass At(int64_t start, const std::vector<TokenId>& tokens) const {
    const auto count = static_cast<int64_t>(tokens.size());
    const auto num_blocks = static_cast<size_t>(BlocksFor(start + count));
    return {.tokens = tokens,
            .chunks = {{.start = start,
                        .num_tokens = count,
                        .blocks = std::span(blocks_).first(num_blocks)}},
            .samples = {},
            .scores = {}};
  }

  std::unique_ptr<Decoder> decoder_;
  std::vector<BlockId> blocks_;
};

int64_t LongestRun(const ModelFolder& folder) {
  size_t longest = 1;
  for (const Json& one : folder.expected.at("cases")) {
    const size_t greedy = one.contains("greedy") ? one.at("greedy").size() : 0;
    longest = std::max(longest, one.at("input_ids").size() + greedy);
  }
  return static_cast<int64_t>(longest);
}

Status CheckCase(const ModelFolder& folder, const Json& one, OneSequence& decoder,
                 FieldCounts& counts) {
  const std::string name = one.at("name");
  PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens, CaseTokens(folder, one));
  if (one.contains("log_probs")) {
    PACE_ASSIGN_OR_RETURN(const std::vector<double> ours, decoder.Logprobs(tokens));
    Field field = counts.Begin(name, "decoder.log_probs");
    field.Near(ours, one.at("log_probs").get<std::vector<double>>(), kLogprobTolerance);
    counts.Count(field);
  }
  if (one.contains("greedy")) {
    const auto expected = one.at("greedy").get<std::vector<int64_t>>();
    PACE_ASSIGN_OR_RETURN(const std::vector<int64_t> ours, decoder.Greedy(tokens, expected.size()));
    Field field = counts.Begin(name, "decoder.greedy");
    field.Same(ours, expected);
    counts.Count(field);
  }
  return Status::Ok();
}

}  // namespace

Status CheckDecoder(const ModelFolder& folder, DeviceKind device, FieldCounts& counts) {
  Result<OneSequence> decoder =
      OneSequence::Create(folder, device, Dtype::kF32, LongestRun(folder));
  if (!decoder.ok()) return decoder.status();
  for (const Json& one : folder.expected.at("cases")) {
    PACE_RETURN_IF_ERROR(CheckCase(folder, one, *decoder, counts));
  }
  if (!folder.expected.contains("bf16_compute")) return Status::Ok();
  decoder = OneSequence::Create(folder, device, Dtype::kBF16, LongestRun(folder));
  if (!decoder.ok()) return decoder.status();
  for (const Json& one : folder.expected.at("bf16_compute")) {
    const Json* const exact = FindCase(folder, one.at("name"));
    if (exact == nullptr) continue;
    PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens, CaseTokens(folder, *exact));
    PACE_ASSIGN_OR_RETURN(const std::vector<double> ours, decoder->Logprobs(tokens));
    CheckBfloat16(folder, one, "decoder.bf16_compute.log_probs", ours, counts);
  }
  return Status::Ok();
}

}  // namespace pace::models
