// `models` in a build without LibTorch: the decoder alone.
#include "conformance/models_kind_checks.h"

namespace pace::models {

Status CheckTrainingNetwork(const ModelFolder& /*folder*/, FieldCounts& /*counts*/) {
  return Unavailable(
      "models: this build has no LibTorch, which the training network needs: build without "
      "PACE_CORE_ONLY");
}

}  // namespace pace::models
