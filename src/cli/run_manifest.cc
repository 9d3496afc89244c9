#include "cli/run_manifest.h"

namespace pace {

Manifest ManifestOf(const Settings& settings, const std::string& name, const std::string& driver) {
  const bool on_gpu = settings.policy.device == PolicyDevice::kCuda;
  return {.name = name,
          .driver = driver,
          .device = on_gpu ? "cuda" : "cpu",
          .threads = settings.train.num_threads + settings.engine.count * settings.engine.threads,
          .determinism = on_gpu ? "none" : (driver == "lab" ? "bitwise" : "responses"),
          .tensorboard = true,
          .watchable = true};
}

}  // namespace pace
