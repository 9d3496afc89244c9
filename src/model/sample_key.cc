#include "model/sample_key.h"

#include "core/random.h"

namespace pace {
namespace {

constexpr uint32_t kSamplingStream = 0x73616D70;

}  // namespace

double UniformOf(const SampleKey& key) {
  const auto group = static_cast<uint64_t>(key.prompt);
  const auto member = static_cast<uint64_t>(key.response);
  return CounterRandom(key.seed, kSamplingStream)
      .Uniform((group << 24) + member, static_cast<uint64_t>(key.token));
}

}  // namespace pace
