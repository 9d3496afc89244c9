// StartThread: a thread, or why there is none.
//
// std::thread throws where the machine is out of threads or memory, which for a server
// is an ordinary day.
#ifndef PACE_CORE_START_THREAD_H_
#define PACE_CORE_START_THREAD_H_

#include <exception>
#include <thread>
#include <utility>

#include "core/status.h"

namespace pace {

template <typename Body>
Result<std::thread> StartThread(Body body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::exception& error) {
    return Unavailable("no thread can be started: ", error.what());
  }
}

}  // namespace pace

#endif  // PACE_CORE_START_THREAD_H_
