// pace-learn has every command.
#include "cli/command.h"

namespace pace {

Status HandOver(char** /*argv*/) {
  return Status::Ok();
}

}  // namespace pace
