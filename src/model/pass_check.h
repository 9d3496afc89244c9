// What every decoder checks before a pass.
#ifndef PACE_MODEL_PASS_CHECK_H_
#define PACE_MODEL_PASS_CHECK_H_

#include <cstdint>
#include <span>

#include "model/decoder.h"

namespace pace {

// Stops the process where a pass breaks what Decoder::Run requires.
void CheckPass(const Pass& pass, const ModelConfig& config, int64_t num_blocks);
// The same for Decoder::ScoreCached.
void CheckCached(std::span<const ScoreRequest> scores, const ModelConfig& config,
                 int64_t num_blocks);

}  // namespace pace

#endif  // PACE_MODEL_PASS_CHECK_H_
