// The base models that travel inside the program; models/*/README.md say how they were
// made. Thread-safety: constant data.
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

// Of list sums, and of products by program.
TinyModelFiles EmbeddedTinyModel();
TinyModelFiles EmbeddedRetoolModel();

}  // namespace pace

#endif  // PACE_EXECUTION_TINY_MODEL_H_
