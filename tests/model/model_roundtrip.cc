// Reads a checkpoint and writes it again, for the Python tests:
//
//   model_roundtrip IN OUT F32|F16|BF16 MAX_SHARD_BYTES
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "model/model_config_json.h"
#include "model/weight_set.h"

namespace pace {
namespace {

Status Run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 4) return InvalidArgument("must be IN OUT DTYPE MAX_SHARD_BYTES");
  const Result<ModelConfig> config = ReadModelConfig(arguments[0]);
  if (!config.ok()) return config.status();
  const Result<WeightSet> weights = WeightSet::Load(*config, arguments[0]);
  if (!weights.ok()) return weights.status();
  const std::optional<Dtype> dtype = ParseDtype(arguments[2]);
  if (!dtype) return InvalidArgument(arguments[2], ": must be F32, F16 or BF16");
  return SaveModel(arguments[1], *config, *weights, *dtype, std::atoll(arguments[3].c_str()));
}

}  // namespace
}  // namespace pace

int main(int argc, char** argv) {
  const pace::Status status = pace::Run(std::vector<std::string>(argv + 1, argv + argc));
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
