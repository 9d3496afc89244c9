// How a caller says that it no longer wants a result: a descriptor that becomes ready, such
// as a connection that its client closed. The default never becomes ready.
//
//   runner.Run(request, {.descriptor = connection, .events = POLLRDHUP});
#ifndef PACE_CORE_CANCELLATION_H_
#define PACE_CORE_CANCELLATION_H_

#include <poll.h>

#include <cstdint>

namespace pace {

struct Cancellation {
  int descriptor = -1;
  int16_t events = POLLIN;
};

}  // namespace pace

#endif  // PACE_CORE_CANCELLATION_H_
