// Named by c10d's header; made and used inside the wheel alone.
#ifndef PACE_RANKS_STUBS_GLOO_TRANSPORT_DEVICE_H_
#define PACE_RANKS_STUBS_GLOO_TRANSPORT_DEVICE_H_

namespace gloo::transport {
class Device;
}  // namespace gloo::transport

#endif  // PACE_RANKS_STUBS_GLOO_TRANSPORT_DEVICE_H_
