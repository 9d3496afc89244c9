// ReadReferenceCheckpoints: small checkpoints with what transformers computes from them.
//
// Every checkpoint is a folder with config.json, weights and expected.json, of which the fields
// that forward passes are compared with are read. For tests alone. Thread-safety: pure functions.
#ifndef PACE_MODEL_REFERENCE_CHECKPOINTS_H_
#define PACE_MODEL_REFERENCE_CHECKPOINTS_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "model/model_config.h"
#include "model/weight_set.h"

namespace pace {

struct ReferenceCase {
  std::string name;
  std::vector<TokenId> input_ids;
  std::vector<size_t> positions;            // of the logits
  std::vector<std::vector<double>> logits;  // at each of these positions
  std::vector<TokenId> greedy;              // the continuation
};

struct ReferenceCheckpoint {
  std::string path;
  ModelConfig config;
  WeightSet weights;
  std::vector<ReferenceCase> cases;
};

// Subfolders without config.json are passed over.
Result<std::vector<ReferenceCheckpoint>> ReadReferenceCheckpoints(
    const std::filesystem::path& folder);

}  // namespace pace

#endif  // PACE_MODEL_REFERENCE_CHECKPOINTS_H_
