// FusionServer: the SandboxFusion interface over HTTP, for any runner.
//
//   POST /run_code   a program and its result (fusion_message.h)
//   GET  /v1/ping    "pong"
//
// A client that hangs up ends its program and frees its slot.
// Thread-safety: as HttpServer's.
#ifndef PACE_SANDBOX_FUSION_SERVER_H_
#define PACE_SANDBOX_FUSION_SERVER_H_

#include <cstdint>
#include <memory>

#include "core/status.h"
#include "http/server.h"
#include "sandbox/program.h"

namespace pace {

struct FusionServerOptions {
  HttpServerOptions http{};
  // What a request may ask for at most; more is cut to it.
  int64_t max_memory_bytes = int64_t{1024} << 20;
  Seconds max_timeout{300};
};

// Borrows the runner.
Result<std::unique_ptr<HttpServer>> StartFusionServer(const FusionServerOptions& options,
                                                      ProgramRunner& runner);

// One request's answer; the server's handler.
HttpResponse AnswerFusion(const HttpMessage& request, const Cancellation& cancellation,
                          const FusionServerOptions& options, ProgramRunner& runner);

}  // namespace pace

#endif  // PACE_SANDBOX_FUSION_SERVER_H_
