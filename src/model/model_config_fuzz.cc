// Fuzzes the reader of config.json. What is accepted must be within the bounds
// that the networks rely on, and must come back the same from what the writer
// makes of it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "model/model_config_json.h"

namespace pace {
namespace {

void CheckShape(const ModelConfig& config) {
  PACE_CHECK(config.num_parameters() > 0, "parameters ", config.num_parameters());
  PACE_CHECK(config.num_heads % config.num_kv_heads == 0, "heads do not share evenly");
  PACE_CHECK(config.head_dim % 2 == 0 && config.head_dim > 0, "head_dim ", config.head_dim);
  for (const float frequency : RopeFrequencies(config)) {
    PACE_CHECK(frequency >= 0, "frequency ", frequency);
  }
}

void Fuzz(std::string_view text) {
  const Result<ModelConfig> config = ParseModelConfig(text);
  if (!config.ok()) {
    const std::string& message = config.status().message();
    PACE_CHECK(message.find('\n') == std::string::npos, "an error must be one line: ", message);
    return;
  }
  CheckShape(*config);
  const std::string written = ModelConfigJson(*config);
  const Result<ModelConfig> again = ParseModelConfig(written);
  PACE_CHECK(again.ok(), again.status().message());
  PACE_CHECK(ModelConfigJson(*again) == written, "changed on the way: ", written);
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pace::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
