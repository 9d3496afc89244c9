// config.json and generation_config.json of a Hugging Face model.
//
// Both layouts are read: the classic one (rope_theta, rope_scaling, torch_dtype) and that of
// transformers 5 (rope_parameters, dtype, layer_types). Keys that change the computation in a
// way we do not support are refused by name. So are unknown keys, unless their value is null,
// false or empty.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_MODEL_CONFIG_JSON_H_
#define PACE_MODEL_MODEL_CONFIG_JSON_H_

#include <string>
#include <string_view>

#include "core/status.h"
#include "model/model_config.h"

namespace pace {

// Reads `folder`/`file` and, for the end-of-text ids, generation_config.json
// beside it if there is one (its list replaces config.json's).
Result<ModelConfig> ReadModelConfig(const std::string& folder,
                                    const std::string& file = "config.json");
Result<ModelConfig> ParseModelConfig(std::string_view json);
// End tokens must be in the vocabulary: no other one could ever end a response.
Status CheckEndTokens(const ModelConfig& config);

// A config.json that `transformers` 4 and 5 read, and generation_config.json.
std::string ModelConfigJson(const ModelConfig& config);
std::string GenerationConfigJson(const ModelConfig& config);

// A config.json that ParseModelConfig accepts, for weights stored in `dtype`:
// every other key stays as it is.
Result<std::string> WithStoredDtype(std::string_view config_json, Dtype dtype);

}  // namespace pace

#endif  // PACE_MODEL_MODEL_CONFIG_JSON_H_
