// What c10d's header names of gloo's class; it is made and used inside the wheel alone.
#ifndef PACE_RANKS_STUBS_GLOO_CONTEXT_H_
#define PACE_RANKS_STUBS_GLOO_CONTEXT_H_

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {
class UnboundBuffer;
}  // namespace transport

}  // namespace gloo

#endif  // PACE_RANKS_STUBS_GLOO_CONTEXT_H_
