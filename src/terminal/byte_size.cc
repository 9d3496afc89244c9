#include "terminal/byte_size.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "core/printable.h"

namespace pace {

Result<int64_t> ParseByteSize(std::string_view option, std::string_view text) {
  constexpr auto kUnits = std::to_array<std::pair<std::string_view, double>>({
      {"", 1},
      {"b", 1},
      {"kb", 1e3},
      {"mb", 1e6},
      {"gb", 1e9},
      {"tb", 1e12},
      {"kib", 1024.0},
      {"mib", 1024.0 * 1024},
      {"gib", 1024.0 * 1024 * 1024},
      {"tib", 1024.0 * 1024 * 1024 * 1024},
  });
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string unit(end, text.data() + text.size());
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* const found = std::find_if(kUnits.begin(), kUnits.end(),
                                         [&](const auto& entry) { return entry.first == unit; });
  const double size = found == kUnits.end() ? 0 : std::floor(number * found->second);
  if (error != std::errc() || !(size >= 1) || size > 1e18) {
    return InvalidArgument(option, " ", Printable(text), ": must be a size, such as 500MB or 2GiB");
  }
  return static_cast<int64_t>(size);
}

}  // namespace pace
