// The base models that travel inside the program; models/*/README.md say how they were
// made. Thread-safety: constant data.
#ifndef PACE_EXECUTION_TINY_MODEL_H_
#define PACE_EXECUTION_TINY_MODEL_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace pace {

struct BuiltInModel {
  std::string_view name;               // its folder in models/, and what policy.model says
  std::string_view config;             // config.json
  std::span<const std::byte> weights;  // model.safetensors
};

// Null where this build has no model of that name.
const BuiltInModel* FindBuiltInModel(std::string_view name);

}  // namespace pace

#endif  // PACE_EXECUTION_TINY_MODEL_H_
