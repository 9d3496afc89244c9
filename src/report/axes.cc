#include "report/axes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/concat.h"

namespace pace {
namespace {

constexpr double kLargest = 1e15;
constexpr int kMostDecimals = 4;         // of a tick; smaller ones have an exponent
constexpr double kLabelCharacter = 7.2;  // its width, at most

double Bounded(double value) {
  if (std::isnan(value)) return 0;
  return std::clamp(value, -kLargest, kLargest);
}

std::string Fixed(double value, int decimals) {
  // Not "-0": a tick at nothing is nothing.
  const double unit = std::pow(10, -decimals);
  if (std::abs(value) < unit / 2) value = 0;
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::fixed, decimals)
                       .ptr;
  return {buffer.data(), end};
}

// "2.5e-6", with the digits that tell ticks at this distance apart.
std::string Scientific(double value, double step) {
  const double digits =
      std::floor(std::log10(std::abs(value)) + 1e-9) - std::floor(std::log10(step) + 1e-9);
  std::array<char, 64> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    std::chars_format::scientific, std::clamp(static_cast<int>(digits), 0, 12))
          .ptr;
  std::string text(buffer.data(), end);
  const size_t exponent = text.find("e-0");
  if (exponent != std::string::npos) text.erase(exponent + 2, 1);
  return text;
}

// Thousands separated, for whole numbers.
std::string Grouped(std::string digits) {
  const size_t first = digits.starts_with('-') ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

struct Unit {
  double size;
  std::string_view suffix;
};
constexpr std::array<Unit, 4> kUnits = {{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};

int DecimalsFor(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
}

Ticks TicksFor(double lo, double hi, int target, double least_step) {
  lo = Bounded(lo);
  hi = Bounded(hi);
  if (hi < lo) std::swap(lo, hi);
  const double magnitude = std::max(std::abs(lo), std::abs(hi));
  if (hi - lo <= magnitude * 1e-9) hi = lo + (magnitude == 0 ? 1 : magnitude * 0.1);
  const double raw = (hi - lo) / std::max(1, target);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = power * 10;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - 1e-9)) {
      step = factor * power;
      break;
    }
  }
  step = std::max(step, least_step);
  Ticks ticks;
  ticks.step = step;
  const double first = std::floor(lo / step + 1e-9);
  const double last = std::max(first + 1, std::ceil(hi / step - 1e-9));
  for (double i = first; i <= last && ticks.values.size() < 200; ++i) {
    ticks.values.push_back(i * step);
  }
  return ticks;
}

}  // namespace

Ticks NiceTicks(double lo, double hi, int target) {
  return TicksFor(lo, hi, target, 0);
}

Ticks WholeTicks(double lo, double hi, int target) {
  return TicksFor(lo, hi, target, 1);
}

std::string TickLabel(double value, double step) {
  if (std::abs(value) < step * 1e-6) return "0";
  for (const Unit& unit : kUnits) {
    const bool large = std::abs(value) >= 10 * unit.size && unit.size > 1e3;
    const bool thousands = unit.size == 1e3 && std::abs(value) >= 1e4;
    if (large || thousands) {
      return Concat(Fixed(value / unit.size, DecimalsFor(step / unit.size)), unit.suffix);
    }
  }
  if (step >= 1) return Grouped(Fixed(value, 0));
  const int decimals = DecimalsFor(step);
  return decimals <= kMostDecimals ? Fixed(value, decimals) : Scientific(value, step);
}

void Plot::MakeRoomForLabels() {
  size_t longest = 0;
  for (const double value : y_ticks.values) {
    longest = std::max(longest, TickLabel(value, y_ticks.step).size());
  }
  left = std::max(left, 8 + kLabelCharacter * static_cast<double>(longest));
}

std::string Readable(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  for (const Unit& unit : kUnits) {
    if (size >= 10 * unit.size || (size >= unit.size && unit.size > 1e3)) {
      const double scaled = value / unit.size;
      return Concat(Fixed(scaled, std::abs(scaled) >= 100 ? 0 : 1), unit.suffix);
    }
  }
  if (size >= 1000) return Grouped(Fixed(value, 0));
  if (size >= 100) return Fixed(value, 0);
  if (size >= 10) return Fixed(value, 1);
  if (size >= 0.1 || size == 0) return Fixed(value, 2);
  if (size < 1e-6) return Concat(value);
  return Fixed(value, std::min(8, 1 - static_cast<int>(std::floor(std::log10(size)))));
}

std::string Percent(double share) {
  const double percent = share * 100;
  const int decimals = std::abs(percent) >= 9.95 || percent == 0 ? 0 : 1;
  return Concat(Fixed(percent, decimals), "\u00a0%");
}

void DrawAxes(Svg& svg, const Plot& plot, std::string_view x_name, std::string_view y_name) {
  const Scale x = plot.XScale();
  const Scale y = plot.YScale();
  for (const double value : plot.y_ticks.values) {
    const double at = y(value);
    svg.Line({plot.left, at}, {plot.right, at}, {.classes = "grid"});
    svg.Text({plot.left - 6, at + 4}, TickLabel(value, plot.y_ticks.step), Anchor::kEnd, "tick");
  }
  for (const double value : plot.x_ticks.values) {
    const double at = x(value);
    if (at < plot.left - 0.5 || at > plot.right + 0.5) continue;
    svg.Line({at, plot.bottom}, {at, plot.bottom + 4}, {.classes = "axis"});
    // The last label stays inside the picture.
    const bool last = at > kChartWidth - 18;
    svg.Text({last ? plot.right + 6 : at, plot.bottom + 17}, TickLabel(value, plot.x_ticks.step),
             last ? Anchor::kEnd : Anchor::kMiddle, "tick");
  }
  svg.Line({plot.left, plot.bottom}, {plot.right, plot.bottom}, {.classes = "axis"});
  svg.Text({(plot.left + plot.right) / 2, plot.bottom + 34}, x_name, Anchor::kMiddle, "name");
  svg.Text({4, 12}, y_name, Anchor::kStart, "name");
}

}  // namespace pace
