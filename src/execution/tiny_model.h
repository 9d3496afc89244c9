// The base model that travels inside the program; models/tiny/README.md says how
// it was made. Thread-safety: constant data.
#ifndef PACE_EXECUTION_TINY_MODEL_H_
#define PACE_EXECUTION_TINY_MODEL_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace pace {

struct TinyModelFiles {
  std::string_view config;             // config.json
  std::span<const std::byte> weights;  // model.safetensors; empty: not built in
};

TinyModelFiles EmbeddedTinyModel();

}  // namespace pace

#endif  // PACE_EXECUTION_TINY_MODEL_H_
