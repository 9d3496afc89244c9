// DecoderDriver: runs whole sequences through a decoder in chunks, for tests.
#ifndef PACE_MODEL_CPU_DECODER_DRIVER_H_
#define PACE_MODEL_CPU_DECODER_DRIVER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/cpu/cpu_decoder.h"
#include "model/weight_set.h"

namespace pace {

struct DriverOptions {
  Dtype dtype = Dtype::kF32;
  Quantization quantization = Quantization::kNone;
  int64_t num_threads = 1;
  Isa isa = BestIsa();
  int64_t num_blocks = 64;
  bool reversed_blocks = false;  // hand out the last block first
  bool cache_states = false;
};

class DecoderDriver {
 public:
  DecoderDriver(const ModelConfig& config, const WeightSet& weights, const DriverOptions& options)
      : DecoderDriver(std::move(CreateCpuDecoderWith(config,
                                                     {.dtype = options.dtype,
                                                      .quantization = options.quantization,
                                                      .num_blocks = options.num_blocks,
                                                      .num_threads = options.num_threads,
                                                      .cache_states = options.cache_states},
                                                     options.isa))
                          .value(),
                      weights, options) {}
  // A decoder of another device, with options.num_blocks blocks.
  DecoderDriver(std::unique_ptr<Decoder> decoder, const WeightSet& weights,
                const DriverOptions& options)
      : options_(options), decoder_(std::move(decoder)) {
    decoder_->Install(decoder_->Prepare(weights).value());
  }

  Decoder& decoder() { return *decoder_; }

  struct Sequence {
    std::vector<TokenId> tokens;
    int64_t num_cached = 0;
    std::vector<BlockId> blocks = {};
    std::vector<float> logprobs = {};  // of tokens[i + 1] after row i
  };

  // Runs the next num_tokens of each; scores every row whose successor is known.
  void Advance(std::span<Sequence* const> sequences, std::span<const int64_t> num_tokens) {
    Pass pass;
    for (size_t i = 0; i < sequences.size(); ++i) AddChunk(*sequences[i], num_tokens[i], pass);
    const PassResult result = decoder_->Run(pass).value();
    size_t score = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      Sequence& sequence = *sequences[i];
      for (int64_t n = 0; n < num_tokens[i]; ++n) {
        const auto next = static_cast<size_t>(sequence.num_cached + n + 1);
        if (next < sequence.tokens.size()) sequence.logprobs.push_back(result.logprobs[score++]);
      }
      sequence.num_cached += num_tokens[i];
    }
  }

  // All log-probabilities of one sequence, run in chunks of these sizes (the
  // last size repeats).
  std::vector<float> Score(const std::vector<TokenId>& tokens, std::vector<int64_t> chunks) {
    Sequence sequence{.tokens = tokens};
    const auto length = static_cast<int64_t>(tokens.size());
    for (size_t i = 0; sequence.num_cached < length; ++i) {
      const int64_t chunk =
          std::min(chunks[std::min(i, chunks.size() - 1)], length - sequence.num_cached);
      Sequence* const only = &sequence;
      Advance({&only, 1}, {&chunk, 1});
    }
    Release(sequence);
    return sequence.logprobs;
  }

  // The same, twice: as the passes say, and afterwards from the hidden states that they cached.
  std::pair<std::vector<float>, std::vector<float>> ScoreTwice(const std::vector<TokenId>& tokens,
                                                               int64_t chunk) {
    Sequence sequence{.tokens = tokens};
    const auto length = static_cast<int64_t>(tokens.size());
    while (sequence.num_cached < length) {
      const int64_t some = std::min(chunk, length - sequence.num_cached);
      Sequence* const only = &sequence;
      Advance({&only, 1}, {&some, 1});
    }
    std::vector<ScoreRequest> kept;
    for (int64_t i = 0; i + 1 < length; ++i) {
      kept.push_back(
          {.row = SlotOf(sequence.blocks, i), .target = tokens[static_cast<size_t>(i) + 1]});
    }
    std::vector<float> logprobs = decoder_->ScoreCached(kept).value();
    Release(sequence);
    return {std::move(sequence.logprobs), std::move(logprobs)};
  }

  // Samples num_tokens after a prompt; the tokens.
  std::vector<Sampled> Generate(const std::vector<TokenId>& prompt, int64_t num_tokens,
                                const SamplingOptions& sampling, int64_t response = 0) {
    Sequence sequence{.tokens = prompt};
    std::vector<Sampled> sampled;
    for (int64_t token = 0; token < num_tokens; ++token) {
      Pass pass;
      const auto chunk = static_cast<int64_t>(sequence.tokens.size()) - sequence.num_cached;
      AddChunk(sequence, chunk, pass);
      pass.scores.clear();
      const SampleKey key = {.seed = 9, .prompt = 1, .response = response, .token = token};
      pass.samples.push_back({.row = chunk - 1, .options = sampling, .key = key});
      sampled.push_back(decoder_->Run(pass).value().samples.front());
      sequence.num_cached += chunk;
      sequence.tokens.push_back(sampled.back().token);
    }
    Release(sequence);
    return sampled;
  }

  void Reserve(Sequence& sequence, int64_t num_tokens) {
    while (static_cast<int64_t>(sequence.blocks.size()) * kBlockTokens < num_tokens) {
      if (free_.empty()) {
        const int64_t at = num_used_++;
        free_.push_back(
            static_cast<BlockId>(options_.reversed_blocks ? options_.num_blocks - 1 - at : at));
      }
      sequence.blocks.push_back(free_.back());
      free_.pop_back();
    }
  }

 private:
  void AddChunk(Sequence& sequence, int64_t num_tokens, Pass& pass) {
    Reserve(sequence, sequence.num_cached + num_tokens);
    const auto first_row = static_cast<int64_t>(pass.tokens.size());
    for (int64_t n = 0; n < num_tokens; ++n) {
      const auto at = static_cast<size_t>(sequence.num_cached + n);
      pass.tokens.push_back(sequence.tokens[at]);
      if (at + 1 < sequence.tokens.size()) {
        pass.scores.push_back({.row = first_row + n, .target = sequence.tokens[at + 1]});
      }
    }
    pass.chunks.push_back(
        {.start = sequence.num_cached, .num_tokens = num_tokens, .blocks = sequence.blocks});
  }

  void Release(Sequence& sequence) {
    free_.insert(free_.end(), sequence.blocks.begin(), sequence.blocks.end());
    sequence.blocks.clear();
  }

  DriverOptions options_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<BlockId> free_;
  int64_t num_used_ = 0;
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_DECODER_DRIVER_H_
