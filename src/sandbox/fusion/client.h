// FusionClient runs programs on a SandboxFusion server: a real one, or ours.
//
// As verl's client: each call may take the program's time, compiling included,
// and ten seconds more; an answer 504 is tried three times, after one and two
// seconds. A program that the server did not run is an error.
//
// Thread-safety: Run may be called from any thread; at most max_programs are with
// the server at once, more wait their turn.
#ifndef PACE_SANDBOX_FUSION_CLIENT_H_
#define PACE_SANDBOX_FUSION_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/status.h"
#include "http/client.h"
#include "sandbox/program.h"
#include "sandbox/program_slots.h"

namespace pace {

struct FusionClientOptions {
  std::string url{};  // http://host:port
  int64_t max_programs = 16;
  Seconds timeout{30};     // of a program that asks for none
  Seconds retry_pause{1};  // doubled after each
};

class FusionClient final : public ProgramRunner {
 public:
  // Connects to nothing yet; Ping does.
  static Result<std::unique_ptr<FusionClient>> Make(const FusionClientOptions& options);

  Status Ping();
  Result<ProgramResult> Run(const ProgramRequest& request,
                            const Cancellation& cancellation) override;

 private:
  FusionClient(const FusionClientOptions& options, HttpUrl url, ProgramSlots slots)
      : options_(options), url_(std::move(url)), free_slots_(std::move(slots)) {}

  Result<ProgramResult> Call(const ProgramRequest& request, const Cancellation& cancellation);

  const FusionClientOptions options_;
  const HttpUrl url_;
  const ProgramSlots free_slots_;
};

}  // namespace pace

#endif  // PACE_SANDBOX_FUSION_CLIENT_H_
