// The types of gloo that c10d's header mentions. The wheel has gloo and c10d's headers, but not
// gloo's own: each of those that c10d includes becomes this one (CMakeLists.txt). Objects of these
// types are made and used inside the wheel alone; only pointers to them pass through here.
#ifndef PACE_RANKS_GLOO_TYPES_H_
#define PACE_RANKS_GLOO_TYPES_H_

#include <chrono>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {
class Device;
class UnboundBuffer;
}  // namespace transport

namespace rendezvous {

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;
};

}  // namespace rendezvous

}  // namespace gloo

#endif  // PACE_RANKS_GLOO_TYPES_H_
