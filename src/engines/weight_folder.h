// WeightFolder: published weights as folders that servers read, on a disk they share with us.
//
//   WeightFolder weights("/shared/run/weights", /*keep=*/3, Dtype::kF32);
//   PACE_ASSIGN_OR_RETURN(std::string folder, weights.Write(version, config, set));
//
// Each version is a Hugging Face folder, v000017, which appears whole or not at all. The output
// projection of a tied model is written too: vLLM on the CPU keeps a copy of it, which weights that
// are loaded later would not change otherwise. The oldest versions are removed; a server that reads
// one of the newest `keep` is not disturbed.
//
// Thread-safety: none; one thread at a time.
#ifndef PACE_ENGINES_WEIGHT_FOLDER_H_
#define PACE_ENGINES_WEIGHT_FOLDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/version.h"
#include "model/model_config.h"
#include "model/weight_set.h"

namespace pace {

class WeightFolder {
 public:
  // `folder` is made when the first weights are written. `dtype`: of what is stored, which should
  // be that of the weights: the policy that samples is the one that is trained.
  WeightFolder(std::string folder, int64_t keep, Dtype dtype)
      : folder_(std::move(folder)), keep_(keep), dtype_(dtype) {}

  // Returns where they are, an absolute path. REQUIRES: weights on the host
  Result<std::string> Write(PolicyVersion version, const ModelConfig& config,
                            const WeightSet& weights);
  // Removes every version that this object wrote.
  void Clear();

 private:
  void Remove(const std::string& path);

  const std::string folder_;
  const int64_t keep_;
  const Dtype dtype_;
  std::vector<std::string> written_;  // oldest first
};

}  // namespace pace

#endif  // PACE_ENGINES_WEIGHT_FOLDER_H_
