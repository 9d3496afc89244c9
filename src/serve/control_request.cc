#include "serve/control_request.h"

#include <charconv>
#include <utility>

#include "core/json_scanner.h"
#include "core/printable.h"

namespace pace {
namespace {

constexpr size_t kMaxAborted = 1 << 16;

Result<std::string> DecodeQuery(std::string_view text) {
  std::string decoded;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '+') {
      decoded += ' ';
    } else if (text[at] != '%') {
      decoded += text[at];
    } else {
      const std::string_view hex = text.substr(at + 1, 2);
      unsigned value = 0;
      const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
      if (hex.size() != 2 || error != std::errc() || end != hex.data() + 2) {
        return InvalidArgument("query '", Printable(text), "': % needs two hexadecimal digits");
      }
      decoded += static_cast<char>(value);
      at += 2;
    }
  }
  return decoded;
}

Result<bool> ReadFlag(const std::string& name, const std::string& text) {
  for (const char* word : {"true", "1", "yes", "on", "True"}) {
    if (text == word) return true;
  }
  for (const char* word : {"false", "0", "no", "off", "False"}) {
    if (text == word) return false;
  }
  return InvalidArgument(name, " = ", Printable(text), ": must be true or false");
}

// {"weights_path": DIR} and nothing else.
std::string ReadFolder(JsonScanner& scan) {
  std::string folder;
  bool is_checkpoint = true;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "weights_path") {
      scan.Text(folder);
    } else if (scan.key() == "is_checkpoint_format") {
      scan.Bool(is_checkpoint);
      if (!is_checkpoint) scan.Fail("must be true");
    } else {
      scan.FailUnknownKey();
    }
  }
  if (scan.ok() && folder.empty()) scan.Fail("weights_path: a folder is required");
  return folder;
}

// An object with one key whose value `read` takes; other keys are errors.
template <typename Read>
Status ReadOneKey(std::string_view body, std::string_view key, bool required, const Read& read) {
  bool found = false;
  JsonScanner scan(body);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == key) {
      found = true;
      read(scan);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (required && !found) return InvalidArgument(key, ": field required");
  return Status::Ok();
}

}  // namespace

Result<Target> ReadTarget(std::string_view target) {
  Target read;
  const size_t mark = target.find('?');
  read.path = target.substr(0, mark);
  if (mark == std::string_view::npos) return read;
  std::string_view query = target.substr(mark + 1);
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? "" : query.substr(end + 1);
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    PACE_ASSIGN_OR_RETURN(std::string name, DecodeQuery(pair.substr(0, equals)));
    PACE_ASSIGN_OR_RETURN(
        std::string value,
        DecodeQuery(equals == std::string_view::npos ? "" : pair.substr(equals + 1)));
    if (!read.query.emplace(name, std::move(value)).second) {
      return InvalidArgument("query: ", Printable(name), " is given twice");
    }
  }
  return read;
}

Result<PauseRequest> ReadPauseRequest(const Target& target) {
  PauseRequest request;
  for (const auto& [name, value] : target.query) {
    if (name == "clear_cache") {
      PACE_ASSIGN_OR_RETURN(request.clear_cache, ReadFlag(name, value));
    } else if (name != "mode") {
      return InvalidArgument("query: unknown name ", Printable(name));
    } else if (value == "abort") {
      request.mode = PauseMode::kAbort;
    } else if (value == "wait") {
      request.mode = PauseMode::kWait;
    } else if (value == "keep") {
      request.mode = PauseMode::kKeep;
    } else {
      return InvalidArgument("mode = ", Printable(value), ": must be abort, wait or keep");
    }
  }
  return request;
}

Result<bool> ReadResetRequest(const Target& target) {
  bool running = false;
  for (const auto& [name, value] : target.query) {
    PACE_ASSIGN_OR_RETURN(const bool flag, ReadFlag(name, value));
    if (name == "reset_running_requests") {
      running = flag;
    } else if (name != "reset_external" || flag) {
      return InvalidArgument("query: ", Printable(name), " is not supported by this server");
    }
  }
  return running;
}

Result<std::vector<std::string>> ReadAbortRequest(std::string_view body, bool required) {
  std::vector<std::string> ids;
  PACE_RETURN_IF_ERROR(ReadOneKey(body, "request_ids", required, [&](JsonScanner& scan) {
    ids.clear();
    if (!required && scan.TakeNull()) return;
    scan.EnterArray();
    while (scan.NextItem()) {
      scan.Text(ids.emplace_back());
      if (ids.size() > kMaxAborted) scan.Fail(Concat("must be at most ", kMaxAborted, " ids"));
    }
  }));
  return ids;
}

std::vector<std::string> KnownIds(const std::vector<std::string>& ids) {
  std::vector<std::string> known;
  for (const std::string& id : ids) {
    known.push_back(id);
    for (const ApiKind kind : {ApiKind::kTokens, ApiKind::kCompletion, ApiKind::kChat}) {
      known.push_back(Concat(IdPrefix(kind), id));
    }
  }
  return known;
}

Result<RpcRequest> ReadRpcRequest(std::string_view body) {
  RpcRequest request;
  std::string method;
  bool has_kwargs = false;
  JsonScanner scan(body);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "method") {
      scan.Text(method);
      request.inspects = method == "get_model_inspection";
      if (scan.ok() && method != "reload_weights" && !request.inspects) {
        return NotFound("method '", Printable(method),
                        "': this server has reload_weights and get_model_inspection");
      }
    } else if (scan.key() == "kwargs") {
      has_kwargs = true;
      request.folder = ReadFolder(scan);
    } else if (scan.key() == "args") {
      scan.EnterArray();
      if (scan.NextItem()) scan.Fail("must be empty (use kwargs)");
    } else if (scan.key() == "timeout") {
      if (!scan.TakeNull()) scan.Fail("is not supported by this server");
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (method.empty()) return InvalidArgument("method: field required");
  if (request.inspects == has_kwargs) {
    return InvalidArgument(has_kwargs ? "kwargs: must be empty"
                                      : "kwargs.weights_path: a folder is required");
  }
  return request;
}

Result<std::string> ReadUpdateRequest(std::string_view body) {
  std::string folder;
  PACE_RETURN_IF_ERROR(ReadOneKey(body, "update_info", true,
                                  [&folder](JsonScanner& scan) { folder = ReadFolder(scan); }));
  return folder;
}

Status ReadInitRequest(std::string_view body) {
  return ReadOneKey(body, "init_info", true, [](JsonScanner& scan) {
    scan.EnterObject();
    while (scan.NextKey()) {
      scan.Fail("is not supported: this server takes weights from folders (update_weights)");
    }
  });
}

Result<std::string> ReadLabelRequest(std::string_view body) {
  std::string label;
  PACE_RETURN_IF_ERROR(
      ReadOneKey(body, "new_version", true, [&label](JsonScanner& scan) { scan.Text(label); }));
  return label;
}

Result<std::optional<std::string>> ReadFinishRequest(std::string_view body) {
  std::optional<std::string> label;
  if (body.empty()) return label;
  PACE_RETURN_IF_ERROR(ReadOneKey(body, "weight_version", false, [&label](JsonScanner& scan) {
    label.reset();
    if (!scan.TakeNull()) scan.Text(label.emplace());
  }));
  return label;
}

}  // namespace pace
