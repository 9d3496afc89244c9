// Options of the commands that run a model.
#ifndef PACE_INFERENCE_INFERENCE_OPTIONS_H_
#define PACE_INFERENCE_INFERENCE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/printable.h"
#include "core/status.h"
#include "formats/dtype.h"
#include "model/sampling.h"

namespace pace {

// As the command line gives them.
struct InferenceArguments {
  std::string model;           // a folder
  std::string dtype = "f32";   // f32 or bf16
  std::string device = "cpu";  // or cuda
  int64_t num_threads = 0;     // 0 = one per core
  std::string kv_memory;       // empty = 1 GiB, or less if that is enough
};

struct GenerationOptions {
  SamplingOptions sampling;
  uint64_t seed = 0;
  int64_t num_responses = 1;
  std::optional<int64_t> max_tokens;  // none: 512, or what the model's positions allow
  bool ignore_eos = false;
  std::vector<std::string> stop_strings;

  [[nodiscard]] Status Validate() const;
};

// The dtypes of weights as the command line spells them.
inline Result<Dtype> ParseModelDtype(std::string_view text) {
  if (text == "f32") return Dtype::kF32;
  if (text == "f16") return Dtype::kF16;
  if (text == "bf16") return Dtype::kBF16;
  return InvalidArgument("--dtype ", Printable(text), ": must be f32, f16 or bf16");
}

}  // namespace pace

#endif  // PACE_INFERENCE_INFERENCE_OPTIONS_H_
