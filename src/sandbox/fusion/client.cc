#include "sandbox/fusion/client.h"

#include <poll.h>

#include <cmath>
#include <utility>

#include "core/printable.h"
#include "sandbox/fusion/message.h"

namespace pace {
namespace {

constexpr int kAttempts = 3;
constexpr Seconds kMargin{10};

bool IsReady(const Cancellation& cancellation, int timeout_ms) {
  pollfd waiting{cancellation.descriptor, cancellation.events, 0};
  return ::poll(&waiting, 1, timeout_ms) > 0;
}

ProgramResult Cancelled() {
  ProgramResult result;
  result.outcome = ProgramOutcome::kCancelled;
  return result;
}

}  // namespace

Result<std::unique_ptr<FusionClient>> FusionClient::Make(const FusionClientOptions& options) {
  PACE_ASSIGN_OR_RETURN(HttpUrl url, ReadHttpUrl(options.url));
  if (options.max_programs < 1 || options.max_programs > 4096) {
    return InvalidArgument("max_programs = ", options.max_programs, ": must be 1 to 4096");
  }
  PACE_ASSIGN_OR_RETURN(ProgramSlots slots, ProgramSlots::Make(options.max_programs));
  return std::unique_ptr<FusionClient>(new FusionClient(options, std::move(url), std::move(slots)));
}

Status FusionClient::Ping() {
  PACE_ASSIGN_OR_RETURN(const HttpMessage answer,
                        CallHttp(url_, {.method = "GET", .target = "/v1/ping"}, kMargin, {}));
  if (answer.status == 200) return Status::Ok();
  return Unavailable(options_.url, "/v1/ping: answered ", answer.status);
}

Result<ProgramResult> FusionClient::Run(const ProgramRequest& request,
                                        const Cancellation& cancellation) {
  const Result<bool> taken = free_slots_.Take(cancellation);
  if (!taken.ok()) return taken.status().At(options_.url);
  if (!*taken) return Cancelled();
  Result<ProgramResult> result = Call(request, cancellation);
  free_slots_.Give();
  return result;
}

Result<ProgramResult> FusionClient::Call(const ProgramRequest& request,
                                         const Cancellation& cancellation) {
  const HttpCall call{.method = "POST",
                      .target = "/run_code",
                      .body = FusionRequestText(request, options_.timeout)};
  const Seconds timeout = request.timeout.value_or(options_.timeout) * 2 + kMargin;
  Seconds pause = options_.retry_pause;
  for (int attempt = 1;; ++attempt) {
    const Result<HttpMessage> answer = CallHttp(url_, call, timeout, cancellation);
    if (IsReady(cancellation, 0)) return Cancelled();
    if (!answer.ok()) return answer.status();
    if (answer->status == 200) {
      Result<ProgramResult> result = ReadFusionResponse(answer->body);
      return result.ok() ? result : Result<ProgramResult>(result.status().At(options_.url));
    }
    if (answer->status != 504 || attempt == kAttempts) {
      return Unavailable(options_.url, ": answered ", answer->status, ": ",
                         Printable(answer->body));
    }
    const int pause_ms = static_cast<int>(std::ceil(pause.count() * 1e3));
    if (IsReady(cancellation, pause_ms)) return Cancelled();
    pause *= 2;
  }
}

}  // namespace pace
