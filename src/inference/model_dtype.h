// The dtypes of weights as the command line spells them.
#ifndef PACE_INFERENCE_MODEL_DTYPE_H_
#define PACE_INFERENCE_MODEL_DTYPE_H_

#include <string_view>

#include "core/printable.h"
#include "core/status.h"
#include "formats/dtype.h"

namespace pace {

inline Result<Dtype> ParseModelDtype(std::string_view text) {
  if (text == "f32") return Dtype::kF32;
  if (text == "f16") return Dtype::kF16;
  if (text == "bf16") return Dtype::kBF16;
  return InvalidArgument("--dtype ", Printable(text), ": must be f32, f16 or bf16");
}

}  // namespace pace

#endif  // PACE_INFERENCE_MODEL_DTYPE_H_
