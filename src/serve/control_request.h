// Requests that control a server: pauses, aborts, weights. Read strictly, as vLLM's clients
// write them.
// Thread-safety: values and pure functions.
#ifndef PACE_SERVE_CONTROL_REQUEST_H_
#define PACE_SERVE_CONTROL_REQUEST_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "serve/engine_host.h"

namespace pace {

// A request's target, "/pause?mode=keep", in its parts. Escapes (%2F, +) are decoded in the query.
struct Target {
  std::string path;
  std::map<std::string, std::string> query;
};
Result<Target> ReadTarget(std::string_view target);

struct PauseRequest {
  PauseMode mode = PauseMode::kAbort;
  bool clear_cache = true;
};
// POST /pause?mode=abort|wait|keep&clear_cache=true|false
Result<PauseRequest> ReadPauseRequest(const Target& target);

// POST /reset_prefix_cache?reset_running_requests=true|false: whether responses that run are
// re-prefilled.
Result<bool> ReadResetRequest(const Target& target);

// POST /abort_requests {"request_ids": [...]}: none = all. `required`: it must be there.
Result<std::vector<std::string>> ReadAbortRequest(std::string_view body, bool required);
// The ids under which requests are known here: as they were given, and with the prefixes that
// answers put in front.
std::vector<std::string> KnownIds(const std::vector<std::string>& ids);

// POST /collective_rpc {"method": "reload_weights", "kwargs": {"weights_path": DIR}}, or
// {"method": "get_model_inspection"}. Errors: another method (kNotFound), other arguments.
struct RpcRequest {
  bool inspects = false;  // the network is to be described
  std::string folder = {};
};
Result<RpcRequest> ReadRpcRequest(std::string_view body);
// POST /update_weights {"update_info": {"weights_path": DIR}}: the folder.
Result<std::string> ReadUpdateRequest(std::string_view body);
// POST /init_weight_transfer_engine {"init_info": {}}: weights come in folders, so that there is
// nothing to say.
Status ReadInitRequest(std::string_view body);
// POST /update_weight_version {"new_version": "7"}.
Result<std::string> ReadLabelRequest(std::string_view body);
// POST /finish_weight_update {"weight_version": "7"}; may be empty or null.
Result<std::optional<std::string>> ReadFinishRequest(std::string_view body);

}  // namespace pace

#endif  // PACE_SERVE_CONTROL_REQUEST_H_
