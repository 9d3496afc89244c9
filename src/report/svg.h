// Svg writes one picture as inline SVG.
//
// Colours are classes, so that the page's style sheet can follow light and
// dark. All text is escaped here and nowhere else.
//
//   Svg svg(400, 240, {"Occupancy", "Groups in the pool ..."});
//   svg.Rect(10, 10, 5, 80, {.classes = "mark f0", .tooltip = "12 groups"});
//   html += std::move(svg).Finish();
//
// Thread-safety: none.
#ifndef PACE_REPORT_SVG_H_
#define PACE_REPORT_SVG_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pace {

// Text made safe for HTML and SVG, between tags and inside quoted attributes:
// markup is escaped, what is not UTF-8 or not printable becomes U+FFFD.
std::string Escape(std::string_view text);
// The same with its line ends kept, for <pre>.
std::string EscapeLines(std::string_view text);

struct Point {
  double x = 0;
  double y = 0;
};

// How one element looks and what it says.
struct Look {
  std::string classes;
  std::string tooltip = {};        // shown on hover; escaped
  std::optional<size_t> run = {};  // the run it belongs to, for the page's key
  std::string_view dashes = {};    // as stroke-dasharray takes it
};

enum class Anchor { kStart, kMiddle, kEnd };

struct PictureText {
  std::string title;        // read out first
  std::string description;  // what the picture shows
};

class Svg {
 public:
  Svg(double width, double height, const PictureText& text);

  void Rect(double x, double y, double width, double height, const Look& look);
  void Line(Point from, Point to, const Look& look);
  // A line through the points; at least one.
  void Polyline(std::span<const Point> points, const Look& look);
  // The area between two lines over the same x.
  void Band(std::span<const Point> lower, std::span<const Point> upper, const Look& look);
  void Polygon(std::span<const Point> points, const Look& look);
  void Text(Point at, std::string_view text, Anchor anchor, std::string_view classes);
  // An attribute of the picture itself, `data-plot="..."` say.
  void SetData(std::string_view name, std::string_view value);

  std::string Finish() &&;

 private:
  void Path(std::span<const Point> points, std::string_view end, const Look& look);
  void Attributes(const Look& look);
  void Close(std::string_view tag, const Look& look);
  void Coordinate(double value);
  void MoveTo(char command, Point point);

  std::string head_;
  std::string body_;
};

}  // namespace pace

#endif  // PACE_REPORT_SVG_H_
