// Names of things, each a type of its own. Stable: docs/library.md.
#ifndef PACE_CORE_IDS_H_
#define PACE_CORE_IDS_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include "core/concat.h"

namespace pace {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(int64_t value) : value_(value) {}
  constexpr int64_t value() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  int64_t value_ = 0;
};

using GroupId = Id<struct GroupTag>;       // the responses to one dispatched prompt
using WorkerId = Id<struct WorkerTag>;     // one rollout engine
using PromptIndex = Id<struct PromptTag>;  // position in the endless prompt stream

template <typename Tag>
void AppendTo(std::string& out, Id<Tag> id) {
  AppendTo(out, id.value());
}

}  // namespace pace

template <typename Tag>
struct std::hash<pace::Id<Tag>> {
  size_t operator()(pace::Id<Tag> id) const noexcept { return std::hash<int64_t>()(id.value()); }
};

#endif  // PACE_CORE_IDS_H_
