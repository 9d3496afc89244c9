// AgreeOnGpus: the ranks tell each other whether they can use GPUs together.
#ifndef PACE_RANKS_GPU_AGREEMENT_H_
#define PACE_RANKS_GPU_AGREEMENT_H_

#include <string>

#include "core/status.h"
#include "ranks/communicator.h"

namespace pace {

// `own`: Ok if this rank can; `library` names what it would use, which must be equal on all. Every
// rank gets the same result: Ok, or the error of the first rank that cannot.
Status AgreeOnGpus(Communicator& ranks, const Status& own, const std::string& library);

}  // namespace pace

#endif  // PACE_RANKS_GPU_AGREEMENT_H_
