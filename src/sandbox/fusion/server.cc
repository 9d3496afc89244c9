#include "sandbox/fusion/server.h"

#include <algorithm>
#include <utility>

#include "core/json_writer.h"
#include "core/printable.h"
#include "sandbox/fusion/message.h"

namespace pace {
namespace {

HttpResponse Refuse(int64_t status, std::string_view why) {
  HttpResponse answer{.status = status, .body = "{\"detail\":"};
  AppendJsonText(answer.body, why);
  answer.body += "}";
  return answer;
}

HttpResponse AnswerRunCode(const HttpMessage& request, const Cancellation& cancellation,
                           const FusionServerOptions& options, ProgramRunner& runner) {
  Result<FusionRequest> read = ReadFusionRequest(request.body);
  if (!read.ok()) return {.status = 422, .body = FusionValidationText(read.status())};
  if (read->language != "python") {
    return {.status = 200,
            .body = FusionResponseText(InvalidArgument("language '", Printable(read->language),
                                                       "': this sandbox runs python"))};
  }
  ProgramRequest& program = read->program;
  if (program.memory_bytes.has_value()) {
    program.memory_bytes = std::min(*program.memory_bytes, options.max_memory_bytes);
  }
  program.timeout = std::min(program.timeout.value_or(options.max_timeout), options.max_timeout);
  return {.status = 200, .body = FusionResponseText(runner.Run(program, cancellation))};
}

}  // namespace

HttpResponse AnswerFusion(const HttpMessage& request, const Cancellation& cancellation,
                          const FusionServerOptions& options, ProgramRunner& runner) {
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  if (path == "/run_code") {
    if (request.method != "POST") return Refuse(405, "Method Not Allowed");
    return AnswerRunCode(request, cancellation, options, runner);
  }
  if (path == "/v1/ping") {
    if (request.method != "GET") return Refuse(405, "Method Not Allowed");
    return {.status = 200, .body = "\"pong\""};
  }
  return Refuse(404, "Not Found");
}

Result<std::unique_ptr<HttpServer>> StartFusionServer(const FusionServerOptions& options,
                                                      ProgramRunner& runner) {
  return HttpServer::Start(options.http, [options, &runner](const HttpMessage& request,
                                                            const Cancellation& cancellation) {
    return AnswerFusion(request, cancellation, options, runner);
  });
}

}  // namespace pace
