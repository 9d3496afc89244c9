// OptionReader fills an options struct from settings written as text.
//
// A loss or an estimator is chosen by name with settings of its own; the
// reader converts each, says which one is wrong, and refuses what it does not
// know. The first error sticks.
//
//   Status Read(OptionReader& reader, PpoOptions& options) {
//     reader.Real("clip_low", options.clip_low);
//     reader.OptionalReal("dual_clip", options.dual_clip);
//     return reader.Finish();
//   }
//
// Thread-safety: none.
#ifndef PACE_TRAIN_OPTION_READER_H_
#define PACE_TRAIN_OPTION_READER_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace pace {

struct NamedSetting {
  std::string name = {};
  std::string value = {};
};
using NamedSettings = std::vector<NamedSetting>;

class OptionReader {
 public:
  // Borrows the settings. `owner` stands in front of every message.
  OptionReader(std::string_view owner, const NamedSettings& settings);

  // Each changes `out` only when the setting is there.
  void Real(std::string_view name, double& out);
  void Bool(std::string_view name, bool& out);
  void Integer(std::string_view name, int64_t& out);
  // `none` empties it.
  void OptionalReal(std::string_view name, std::optional<double>& out);

  template <typename Enum>
  void Choice(std::string_view name,
              std::initializer_list<std::pair<std::string_view, Enum>> choices, Enum& out) {
    const std::string* value = Take(name);
    if (value == nullptr) return;
    std::string known;
    for (const auto& [text, choice] : choices) {
      if (text == *value) {
        out = choice;
        return;
      }
      known += known.empty() ? "" : ", ";
      known += text;
    }
    Fail(name, *value, "must be one of " + known);
  }

  // Everything was read and known.
  [[nodiscard]] Status Finish();

 private:
  // The value of that name, marked as read; null if absent.
  const std::string* Take(std::string_view name);
  void Fail(std::string_view name, std::string_view value, std::string_view rule);

  std::string owner_;
  const NamedSettings& settings_;
  std::vector<bool> read_;
  Status status_;
};

}  // namespace pace

#endif  // PACE_TRAIN_OPTION_READER_H_
