#include "model/sampling.h"

#include <cmath>

#include "core/random.h"

namespace pace {
namespace {

constexpr uint32_t kSamplingStream = 0x73616D70;

}  // namespace

Status SamplingOptions::Validate() const {
  if (!(temperature >= 0 && std::isfinite(temperature))) {
    return InvalidArgument("temperature = ", temperature, ": must be >= 0 (0 means greedy)");
  }
  if (temperature > 0 && temperature < 1e-4) {
    return InvalidArgument("temperature = ", temperature,
                           ": must be 0 (greedy) or at least 0.0001");
  }
  if (top_k < 0) return InvalidArgument("top_k = ", top_k, ": must be >= 0 (0 keeps all)");
  if (!(top_p > 0 && top_p <= 1)) {
    return InvalidArgument("top_p = ", top_p, ": must be in (0, 1] (1 keeps all)");
  }
  if (!(min_p >= 0 && min_p <= 1)) {
    return InvalidArgument("min_p = ", min_p, ": must be in [0, 1] (0 keeps all)");
  }
  return Status::Ok();
}

double UniformOf(const SampleKey& key) {
  const auto group = static_cast<uint64_t>(key.prompt);
  const auto member = static_cast<uint64_t>(key.response);
  return CounterRandom(key.seed, kSamplingStream)
      .Uniform((group << 24) + member, static_cast<uint64_t>(key.token));
}

}  // namespace pace
