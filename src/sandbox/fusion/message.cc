#include "sandbox/fusion/message.h"

#include <limits>
#include <optional>
#include <utility>

#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "core/utf8.h"
#include "http/message.h"
#include "sandbox/program.h"

namespace pace {
namespace {

constexpr Seconds kDefaultTimeout{10};
constexpr double kMaxTimeout = 3600;
constexpr int64_t kMaxMegabytes = int64_t{1} << 20;
constexpr int64_t kMiB = int64_t{1} << 20;

// {path: base64}; a null content is passed over.
void ReadFiles(JsonScanner& scan, std::vector<ProgramFile>& files) {
  std::string text;
  scan.EnterObject();
  while (scan.NextKey()) {
    std::string path(scan.key());
    if (scan.TakeNull() || !scan.Text(text)) continue;
    std::optional<std::string> content = DecodeBase64(text);
    if (!content.has_value()) {
      scan.Fail("must be base64");
      return;
    }
    files.push_back({std::move(path), *std::move(content)});
  }
}

void ReadPaths(JsonScanner& scan, std::vector<std::string>& paths) {
  scan.EnterArray();
  while (scan.NextItem()) scan.Text(paths.emplace_back());
}

void ReadMemory(JsonScanner& scan, ProgramRequest& program) {
  int64_t megabytes = -1;
  if (!scan.Integer(-1, kMaxMegabytes, "-1 = the server's limit", megabytes)) return;
  if (megabytes > 0) program.memory_bytes = megabytes * kMiB;
}

void ReadTimeout(JsonScanner& scan, double minimum, double& seconds) {
  scan.Real(minimum, kMaxTimeout, "seconds", seconds);
}

// Which of the result's states SandboxFusion knows.
const char* RunStatus(const ProgramResult& result) {
  return result.outcome == ProgramOutcome::kFinished ? "Finished" : "TimeLimitExceeded";
}

void WriteFiles(JsonWriter& json, const std::vector<ProgramFile>& files) {
  json.Key("files");
  json.BeginObject();
  for (const ProgramFile& file : files) {
    std::string key;
    AppendJsonText(key, ReplaceIllFormed(file.path));
    json.Put(std::string_view(key).substr(1, key.size() - 2), EncodeBase64(file.content));
  }
  json.EndObject();
}

void WriteRunResult(JsonWriter& json, const ProgramResult& result) {
  json.Key("run_result");
  json.BeginObject();
  json.Put("status", RunStatus(result));
  json.Put("execution_time", result.time.count());
  json.Put("return_code", result.return_code);
  json.Put("stdout", OutputText(result.out, result.out_cut));
  json.Put("stderr", OutputText(result.error, result.error_cut));
  json.EndObject();
}

void WriteFailure(JsonWriter& json, const std::string& message) {
  json.Put("status", "SandboxError");
  json.Put("message", message);
  json.Put("compile_result", nullptr);
  json.Key("run_result");
  json.BeginObject();
  json.Put("status", "Error");
  json.Put("execution_time", nullptr);
  json.Put("return_code", nullptr);
  json.Put("stdout", nullptr);
  json.Put("stderr", message);
  json.EndObject();
}

void ReadText(JsonScanner& scan, std::string& text) {
  if (!scan.TakeNull()) scan.Text(text);
}

void ReadRunResult(JsonScanner& scan, ProgramResult& result, std::string& status) {
  if (scan.TakeNull()) return;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "status") {
      scan.Text(status);
    } else if (scan.key() == "execution_time") {
      double seconds = 0;
      if (!scan.TakeNull()) scan.Real(0, std::numeric_limits<double>::max(), "", seconds);
      result.time = Seconds(seconds);
    } else if (scan.key() == "return_code") {
      int64_t code = 0;
      if (!scan.TakeNull() && scan.Integer(-1'000'000, 1'000'000, "", code)) {
        result.return_code = code;
      }
    } else if (scan.key() == "stdout") {
      ReadText(scan, result.out);
    } else if (scan.key() == "stderr") {
      ReadText(scan, result.error);
    } else {
      scan.Skip();
    }
  }
}

}  // namespace

Result<FusionRequest> ReadFusionRequest(std::string_view body) {
  FusionRequest request;
  request.program.timeout = kDefaultTimeout;
  bool has_code = false;
  bool has_language = false;
  JsonScanner scan(body);
  scan.EnterObject();
  while (scan.NextKey()) {
    double seconds = 0;
    if (scan.key() == "code") {
      has_code = scan.Text(request.program.code);
    } else if (scan.key() == "language") {
      has_language = scan.Text(request.language);
    } else if (scan.key() == "run_timeout") {
      ReadTimeout(scan, 1e-3, seconds);
      request.program.timeout = Seconds(seconds);
    } else if (scan.key() == "compile_timeout") {
      ReadTimeout(scan, 0, seconds);
    } else if (scan.key() == "memory_limit_MB") {
      ReadMemory(scan, request.program);
    } else if (scan.key() == "stdin") {
      ReadText(scan, request.program.input);
    } else if (scan.key() == "files") {
      ReadFiles(scan, request.program.files);
    } else if (scan.key() == "fetch_files") {
      ReadPaths(scan, request.program.fetch);
    } else {
      scan.Skip();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!has_code) return InvalidArgument("code: field required");
  if (!has_language) return InvalidArgument("language: field required");
  for (const ProgramFile& file : request.program.files) {
    PACE_RETURN_IF_ERROR(CheckProgramPath(file.path).At("files"));
  }
  for (const std::string& path : request.program.fetch) {
    PACE_RETURN_IF_ERROR(CheckProgramPath(path).At("fetch_files"));
  }
  return request;
}

std::string FusionResponseText(const Result<ProgramResult>& result) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  if (!result.ok()) {
    WriteFailure(json, result.status().message());
  } else {
    json.Put("status", result->return_code == 0 ? "Success" : "Failed");
    json.Put("message", "");
    json.Put("compile_result", nullptr);
    WriteRunResult(json, *result);
  }
  json.Put("executor_pod_name", nullptr);
  WriteFiles(json, result.ok() ? result->files : std::vector<ProgramFile>());
  json.EndObject();
  return text;
}

std::string FusionValidationText(const Status& status) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  json.Key("detail");
  json.BeginArray();
  json.BeginObject();
  json.Put("type", "value_error");
  json.Key("loc");
  json.BeginArray();
  json.Value("body");
  json.EndArray();
  json.Put("msg", status.message());
  json.EndObject();
  json.EndArray();
  json.EndObject();
  return text;
}

std::string FusionRequestText(const ProgramRequest& program, Seconds timeout) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  json.Put("code", ReplaceIllFormed(program.code));
  json.Put("language", "python");
  json.Put("run_timeout", program.timeout.value_or(timeout).count());
  json.Put("compile_timeout", program.timeout.value_or(timeout).count());
  if (program.memory_bytes.has_value()) {
    json.Put("memory_limit_MB", std::max<int64_t>(*program.memory_bytes / kMiB, 1));
  }
  json.Key("stdin");
  program.input.empty() ? json.Value(nullptr) : json.Value(ReplaceIllFormed(program.input));
  WriteFiles(json, program.files);
  json.Key("fetch_files");
  json.BeginArray();
  for (const std::string& path : program.fetch) json.Value(ReplaceIllFormed(path));
  json.EndArray();
  json.EndObject();
  return text;
}

Result<ProgramResult> ReadFusionResponse(std::string_view body) {
  ProgramResult result;
  std::string status;
  std::string message;
  std::string run_status;
  JsonScanner scan(body);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "status") {
      scan.Text(status);
    } else if (scan.key() == "message") {
      ReadText(scan, message);
    } else if (scan.key() == "run_result") {
      ReadRunResult(scan, result, run_status);
    } else if (scan.key() == "files" && !scan.TakeNull()) {
      ReadFiles(scan, result.files);
    } else {
      scan.Skip();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (status != "Success" && status != "Failed") {
    return DataLoss(status.empty() ? "an answer without a status" : status, ": ", message);
  }
  if (run_status == "TimeLimitExceeded") {
    result.outcome = ProgramOutcome::kTimeLimit;
    result.return_code.reset();
  } else if (run_status != "Finished" || !result.return_code.has_value()) {
    return DataLoss("run_result.status = '", run_status, "': must be Finished with a return code, ",
                    "or TimeLimitExceeded");
  }
  return result;
}

}  // namespace pace
