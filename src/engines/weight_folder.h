// WeightFolder: published weights as folders that servers read, on a disk they share with us.
//
//   WeightFolder weights("/shared/run/weights", /*keep=*/3, Dtype::kF32);
//   PACE_ASSIGN_OR_RETURN(const HeldFolder folder, weights.Write(version, config, set));
//
// Each version is a Hugging Face folder, v000017, which appears whole or not at all. The output
// projection of a tied model is written too: vLLM on the CPU keeps a copy of it, which weights that
// are loaded later would not change otherwise. All but the newest `keep` versions are removed, each
// when nobody holds it any more: a slow server may still read it.
//
// Thread-safety: none; one thread at a time. What is held may be let go on any thread.
#ifndef PACE_ENGINES_WEIGHT_FOLDER_H_
#define PACE_ENGINES_WEIGHT_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/version.h"
#include "model/model_config.h"
#include "model/weight_set.h"

namespace pace {

// A version that stays as long as `hold` does.
struct HeldFolder {
  std::string path;  // absolute
  std::shared_ptr<const void> hold;
};

class WeightFolder {
 public:
  // `folder` is made when the first weights are written. `dtype`: of what is stored, which should
  // be that of the weights: the policy that samples is the one that is trained.
  WeightFolder(std::string folder, int64_t keep, Dtype dtype);
  WeightFolder(WeightFolder&&) noexcept;
  ~WeightFolder();

  // REQUIRES: weights on the host
  Result<HeldFolder> Write(PolicyVersion version, const ModelConfig& config,
                           const WeightSet& weights);
  // Removes the newest versions, held or not.
  void Clear();

 private:
  class Version;

  const std::string folder_;
  const int64_t keep_;
  const Dtype dtype_;
  std::vector<std::shared_ptr<Version>> newest_;  // oldest first
};

}  // namespace pace

#endif  // PACE_ENGINES_WEIGHT_FOLDER_H_
