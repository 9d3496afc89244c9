// Settings of the synthetic workload, and of comparisons.
#ifndef PACE_CONFIG_WORKLOAD_OPTIONS_H_
#define PACE_CONFIG_WORKLOAD_OPTIONS_H_

#include <string>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

struct WorkloadOptions {
  double mean_tokens = 2000;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

struct CompareOptions {
  // Method names that `pace sim` runs side by side; empty = the settings as they are.
  std::vector<std::string> methods;

  [[nodiscard]] std::vector<Field> Fields();
};

}  // namespace pace

#endif  // PACE_CONFIG_WORKLOAD_OPTIONS_H_
