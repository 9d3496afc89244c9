// Policies written in Python, as the C++ side calls them.
#ifndef PACE_PYTHON_BIND_POLICIES_H_
#define PACE_PYTHON_BIND_POLICIES_H_

#include <nanobind/nanobind.h>

#include <memory>

#include "control/admission_policy.h"
#include "control/supply_policy.h"

namespace pace::python {

// An object with a method judge(group), and optionally begin_step(step, occupancy, batch, served),
// observe(group, decision), score(group) and the attribute needs_members. What it raises passes
// through the C++ code unchanged. The GIL is taken for each call.
std::unique_ptr<AdmissionPolicy> AdmissionFromPython(nanobind::object policy);

// An object with a method num_to_start(view), and optionally on_group_finished(view),
// on_trainer_ready(view, report) and max_outstanding().
std::unique_ptr<SupplyPolicy> SupplyFromPython(nanobind::object policy);

}  // namespace pace::python

#endif  // PACE_PYTHON_BIND_POLICIES_H_
