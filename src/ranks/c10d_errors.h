// What c10d throws, as a Status.
//
//   PACE_RETURN_IF_ERROR(Caught([&] { store->set(key, value); }));
//
// Thread-safety: every function.
#ifndef PACE_RANKS_C10D_ERRORS_H_
#define PACE_RANKS_C10D_ERRORS_H_

#include <c10/util/Logging.h>

#include <exception>
#include <string>

#include "core/status.h"
#include "ranks/rank_environment.h"

namespace pace {

// The reason alone: torch's and gloo's messages carry a file, a stack trace and advice.
inline std::string ReasonOf(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  text = text.substr(0, text.find(". This is typically caused by"));
  if (text.starts_with('[')) {
    const size_t end = text.find("] ");
    if (end != std::string::npos) text = text.substr(end + 2);
  }
  return text;
}

template <typename Call>
Status Caught(const Call& call) {
  try {
    call();
    return Status::Ok();
  } catch (const std::exception& error) {
    return Unavailable(ReasonOf(error));
  }
}

// c10d logs what it also throws, with stack traces.
inline void SilenceC10d() {
  if (!ProcessVariable("TORCH_CPP_LOG_LEVEL").has_value()) {
    FLAGS_caffe2_log_level = c10::GLOG_FATAL;
  }
}

}  // namespace pace

#endif  // PACE_RANKS_C10D_ERRORS_H_
