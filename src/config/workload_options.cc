#include "config/workload_options.h"

namespace pace {

std::vector<Field> WorkloadOptions::Fields() {
  return {Field::Real("mean_tokens", mean_tokens, "Mean response length.").Above(0)};
}

Status WorkloadOptions::Validate() const { return Status::Ok(); }

std::vector<Field> CompareOptions::Fields() {
  return {Field::TextList("methods", methods, "Methods to run side by side.")};
}

}  // namespace pace
