#include "bench/python_peer.h"

#include <limits>

#include "bench/peer_process.h"
#include "bench/scripts.h"
#include "core/json_scanner.h"

namespace pace {
namespace {

// It needs no packages, so any Python will do.
constexpr const char* kPython = "python3";
// For a start-up on a busy machine, on top of the work asked for.
constexpr double kPeerGraceSeconds = 60;

}  // namespace

Result<std::string> RunNaiveController(const std::vector<std::string>& arguments,
                                       const std::string& input_path, Seconds timeout) {
  PACE_ASSIGN_OR_RETURN(PeerProcess peer, PeerProcess::Start(kPython, NaiveControllerSource(),
                                                             arguments, input_path));
  return peer.ReadToEnd(timeout);
}

Result<PeerNumbers> MeasurePeer(double seconds, int64_t window, int64_t small_pool,
                                int64_t large_pool) {
  PACE_ASSIGN_OR_RETURN(const std::string text,
                        RunNaiveController({"--bench", Concat(seconds), Concat(window),
                                            Concat(small_pool), Concat(large_pool)},
                                           "/dev/null", Seconds(10 * seconds + kPeerGraceSeconds)));
  PeerNumbers numbers;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    double PeerNumbers::* field = nullptr;
    if (scan.key() == "verdict") field = &PeerNumbers::verdict;
    if (scan.key() == "begin_step") field = &PeerNumbers::begin_step;
    if (scan.key() == "pool_small") field = &PeerNumbers::pool_small;
    if (scan.key() == "pool_large") field = &PeerNumbers::pool_large;
    if (scan.key() == "pool_small_lowest_score") field = &PeerNumbers::pool_small_lowest_score;
    if (scan.key() == "python") {
      scan.Text(numbers.python);
    } else if (field != nullptr) {
      scan.Real(0, std::numeric_limits<double>::max(), "", numbers.*field);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status().At("naive_controller.py");
  return numbers;
}

}  // namespace pace
