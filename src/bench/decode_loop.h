// DecodeLoop: sequences at one context, decoded token by token.
#ifndef PACE_BENCH_DECODE_LOOP_H_
#define PACE_BENCH_DECODE_LOOP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/status.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/decoder.h"
#include "model/devices.h"

namespace pace {

class DecodeLoop {
 public:
  // Random weights; room for max_batch sequences of max_tokens.
  static Result<std::unique_ptr<DecodeLoop>> Create(const ModelConfig& config, DeviceKind device,
                                                    int64_t num_threads, int64_t max_batch,
                                                    int64_t max_tokens);

  // Fills the cache of the first `batch` sequences; seconds.
  Result<double> Prefill(int64_t batch, int64_t context);
  // Decodes new_tokens behind the context, again and again from there; seconds.
  Result<double> Decode(int64_t batch, int64_t context, int64_t new_tokens);
  // The parts of one such pass, each alone. REQUIRES: on a GPU
  Result<std::vector<DecodePart>> Profile(int64_t batch, int64_t context);
  // Seconds that installing the weights once more takes.
  double Install();

 private:
  DecodeLoop() = default;
  // One new token of each sequence behind the context.
  Pass MakePass(int64_t batch, int64_t context) const;

  std::unique_ptr<Decoder> decoder_;
  std::shared_ptr<const DecoderWeights> weights_;
  std::vector<std::vector<BlockId>> blocks_;  // of each sequence
};

}  // namespace pace

#endif  // PACE_BENCH_DECODE_LOOP_H_
