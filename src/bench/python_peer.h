// The naive controller in Python, run as a child process.
//
// Its source is compiled into the program, so a benchmark needs nothing but a
// python3 on the path.
#ifndef PACE_BENCH_PYTHON_PEER_H_
#define PACE_BENCH_PYTHON_PEER_H_

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"

namespace pace {

// What the script prints for these arguments. It reads `input_path` as its
// standard input. kUnavailable where there is
// no python3, the script fails or does not end in time.
Result<std::string> RunNaiveController(const std::vector<std::string>& arguments,
                                       const std::string& input_path, Seconds timeout);

// One repetition of each of the peer's measurements; units as in ours.
struct PeerNumbers {
  std::string python;  // its version
  double verdict = 0;
  double begin_step = 0;
  double pool_small = 0;
  double pool_large = 0;
  double pool_small_lowest_score = 0;
};
Result<PeerNumbers> MeasurePeer(double seconds, int64_t window, int64_t small_pool,
                                int64_t large_pool);

}  // namespace pace

#endif  // PACE_BENCH_PYTHON_PEER_H_
