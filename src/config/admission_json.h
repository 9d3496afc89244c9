// Admission options from JSON: `{"config": {"policy": "pace", ...}}`, the form
// that stands beside an admission trace.
#ifndef PACE_CONFIG_ADMISSION_JSON_H_
#define PACE_CONFIG_ADMISSION_JSON_H_

#include <string>
#include <string_view>

#include "config/admission_options.h"
#include "core/status.h"

namespace pace {

// Strict: types are JSON's, an unknown or repeated key is an error. `name`
// stands in front of errors.
Result<AdmissionOptions> AdmissionFromJson(std::string_view json, const std::string& name);

}  // namespace pace

#endif  // PACE_CONFIG_ADMISSION_JSON_H_
