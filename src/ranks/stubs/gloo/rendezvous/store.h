// What c10d's header derives from; no object of ours is one.
#ifndef PACE_RANKS_STUBS_GLOO_RENDEZVOUS_STORE_H_
#define PACE_RANKS_STUBS_GLOO_RENDEZVOUS_STORE_H_

#include <chrono>
#include <string>
#include <vector>

namespace gloo::rendezvous {

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;
};

}  // namespace gloo::rendezvous

#endif  // PACE_RANKS_STUBS_GLOO_RENDEZVOUS_STORE_H_
