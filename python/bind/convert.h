// What all bindings share: errors of pace as Python exceptions, and versions and ids as plain ints.
#ifndef PACE_PYTHON_BIND_CONVERT_H_
#define PACE_PYTHON_BIND_CONVERT_H_

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/status.h"
#include "core/version.h"
#include "record/step_metrics.h"

namespace pace::python {

namespace nb = nanobind;

// Carries a Status to the translator that RegisterErrors installs.
struct StatusError {
  Status status;
};

inline void Check(const Status& status) {
  if (!status.ok()) throw StatusError{status};
}
template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) throw StatusError{result.status()};
  return std::move(result).value();
}

// Raises pace.InvalidArgument.
template <typename... Parts>
[[noreturn]] void Refuse(const Parts&... parts) {
  throw StatusError{InvalidArgument(parts...)};
}

inline std::optional<PolicyVersion> VersionOf(std::optional<int64_t> step) {
  return step.has_value() ? std::optional(PolicyVersion(*step)) : std::nullopt;
}
inline std::optional<int64_t> StepOf(std::optional<PolicyVersion> version) {
  return version.has_value() ? std::optional(version->step()) : std::nullopt;
}

inline nb::dict DictOf(const MetricsRow& row) {
  nb::dict out;
  for (const auto& [name, value] : row) out[name.c_str()] = value;
  return out;
}

// Each adds its part of the module.
void RegisterErrors(nb::module_& module);
void BindSettings(nb::module_& module);
void BindGroups(nb::module_& module);
void BindPolicies(nb::module_& module);
void BindSession(nb::module_& module);
void BindCoordinator(nb::module_& module);
void BindSimulator(nb::module_& module);
void BindRecords(nb::module_& module);

}  // namespace pace::python

#endif  // PACE_PYTHON_BIND_CONVERT_H_
