#include "record/build_info.h"

namespace pace {

std::string_view PaceVersion() {
  return PACE_VERSION;
}
std::string_view PaceCommit() {
  return PACE_COMMIT;
}

}  // namespace pace
