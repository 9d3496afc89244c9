// `numerics` in a build without the folders train and reward.
#include "conformance/kinds.h"

namespace pace {

Status CheckNumerics(const KindArguments& /*arguments*/, Tally& /*tally*/) {
  return Unavailable("numerics: this build leaves out src/train: build without PACE_CORE_ONLY");
}

}  // namespace pace
