// `models` in a build without LibTorch.
#include "conformance/kinds.h"

namespace pace {

Status CheckModels(const KindArguments& /*arguments*/, Tally& /*tally*/) {
  return Unavailable(
      "models: this build has no LibTorch, which the training network needs: build without "
      "PACE_CORE_ONLY");
}

}  // namespace pace
