#include "cluster/tool_pool.h"

#include "core/exact_math.h"
#include "core/random.h"

namespace pace {
namespace {

// A stream of the run's seed.
constexpr uint32_t kToolStream = 0x5706;
// Members count below this, so (member, turn) packs into one counter.
constexpr uint64_t kTurnsPerMember = 1024;

}  // namespace

Seconds ToolLatency(const WorkloadOptions& options, uint64_t seed, PromptIndex prompt,
                    int64_t member, int64_t turn) {
  const CounterRandom random(seed, kToolStream);
  const uint64_t counter =
      static_cast<uint64_t>(member) * kTurnsPerMember + static_cast<uint64_t>(turn);
  const double normal = random.Normal(static_cast<uint64_t>(prompt.value()), counter);
  const double sigma = options.tool_latency_sigma;
  // The factor's mean is 1 for every sigma.
  return Seconds(options.tool_latency_s * exact::Exp(sigma * normal - 0.5 * sigma * sigma));
}

}  // namespace pace
