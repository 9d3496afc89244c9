// SandboxFusion's messages: what POST /run_code takes and answers.
//
// Only Python is run. `compile_timeout` is read and has no meaning here; keys
// that are unknown are ignored, as SandboxFusion does.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_SANDBOX_FUSION_MESSAGE_H_
#define PACE_SANDBOX_FUSION_MESSAGE_H_

#include <string>
#include <string_view>

#include "core/status.h"
#include "sandbox/program.h"

namespace pace {

struct FusionRequest {
  std::string language = "python";
  ProgramRequest program{};
};

// The server's side. An error is one of validation (HTTP 422).
Result<FusionRequest> ReadFusionRequest(std::string_view body);
std::string FusionResponseText(const Result<ProgramResult>& result);
// The body of a 422.
std::string FusionValidationText(const Status& status);

// The client's side. A response whose status is SandboxError is an error here.
std::string FusionRequestText(const ProgramRequest& program, Seconds timeout);
Result<ProgramResult> ReadFusionResponse(std::string_view body);

}  // namespace pace

#endif  // PACE_SANDBOX_FUSION_MESSAGE_H_
