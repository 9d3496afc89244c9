// ConnectGpus: collectives over tensors on GPUs, with NCCL, beside those of the CPU.
//
//   PACE_RETURN_IF_ERROR(ConnectGpus(*ranks, {.collective = std::chrono::seconds(600)}));
//
// Every rank calls it, at the same point. The ranks first tell each other whether they have a GPU
// and NCCL; if one has not, all of them return an error that names it. Collectives run on the
// calling thread's current stream, and return when the stream is idle, so that their deadline
// (RankOptions::collective) and a lost rank end them. Texts and CPU tensors stay with gloo.
// In a build without CUDA all ranks return one line that says so.
#ifndef PACE_RANKS_GPU_RANKS_H_
#define PACE_RANKS_GPU_RANKS_H_

#include "core/status.h"
#include "ranks/communicator.h"

namespace pace {

// `ranks` have not yet failed.
Status ConnectGpus(Communicator& ranks, const RankOptions& options);

}  // namespace pace

#endif  // PACE_RANKS_GPU_RANKS_H_
