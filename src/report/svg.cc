#include "report/svg.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/concat.h"
#include "core/utf8.h"

namespace pace {

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      const CodePoint point = ReadCodePoint(text, i);
      out += point.well_formed ? text.substr(i, point.num_bytes) : kReplacementCharacter;
      i += point.well_formed ? point.num_bytes : 1;
      continue;
    }
    ++i;
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
      case '\t':
        out += ' ';
        break;
      default:
        if (c < 0x20 || c == 0x7f) {
          out += kReplacementCharacter;
        } else {
          out += static_cast<char>(c);
        }
    }
  }
  return out;
}

std::string EscapeLines(std::string_view text) {
  std::string out;
  while (true) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += Escape(text.substr(0, end));
    if (end == text.size()) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

Svg::Svg(double width, double height, const PictureText& text) {
  head_ = Concat("<svg role=\"img\" viewBox=\"0 0 ", width, " ", height, "\"");
  body_ =
      Concat("><title>", Escape(text.title), "</title><desc>", Escape(text.description), "</desc>");
}

void Svg::SetData(std::string_view name, std::string_view value) {
  head_ += Concat(" data-", name, "=\"", Escape(value), "\"");
}

// Tenths of a unit are finer than a screen.
void Svg::Coordinate(double value) {
  const double rounded = std::round(value * 10) / 10;
  AppendTo(body_, std::isfinite(rounded) ? rounded + 0.0 : 0.0);
}

void Svg::MoveTo(char command, Point point) {
  body_ += command;
  Coordinate(point.x);
  body_ += ' ';
  Coordinate(point.y);
}

void Svg::Attributes(const Look& look) {
  body_ += Concat(" class=\"", look.classes, "\"");
  if (look.run.has_value()) body_ += Concat(" data-run=\"", *look.run, "\"");
  if (!look.dashes.empty()) body_ += Concat(" stroke-dasharray=\"", look.dashes, "\"");
}

void Svg::Close(std::string_view tag, const Look& look) {
  if (look.tooltip.empty()) {
    body_ += "/>";
  } else {
    body_ += Concat("><title>", Escape(look.tooltip), "</title></", tag, ">");
  }
}

void Svg::Rect(double x, double y, double width, double height, const Look& look) {
  body_ += "<rect x=\"";
  Coordinate(x);
  body_ += "\" y=\"";
  Coordinate(y);
  body_ += "\" width=\"";
  Coordinate(std::max(0.0, width));
  body_ += "\" height=\"";
  Coordinate(std::max(0.0, height));
  body_ += '"';
  Attributes(look);
  Close("rect", look);
}

void Svg::Line(Point from, Point to, const Look& look) {
  const Point points[] = {from, to};
  Polyline(points, look);
}

// Straight from point to point; `end` closes the path or not.
void Svg::Path(std::span<const Point> points, std::string_view end, const Look& look) {
  body_ += "<path d=\"";
  for (size_t i = 0; i < points.size(); ++i) MoveTo(i == 0 ? 'M' : 'L', points[i]);
  body_ += end;
  body_ += '"';
  Attributes(look);
  Close("path", look);
}

void Svg::Polyline(std::span<const Point> points, const Look& look) {
  // A single point shows as a dot under a round line cap.
  points.size() == 1 ? Line(points[0], points[0], look) : Path(points, "", look);
}

void Svg::Polygon(std::span<const Point> points, const Look& look) {
  Path(points, "Z", look);
}

void Svg::Band(std::span<const Point> lower, std::span<const Point> upper, const Look& look) {
  std::vector<Point> around(upper.begin(), upper.end());
  around.insert(around.end(), lower.rbegin(), lower.rend());
  Path(around, "Z", look);
}

void Svg::Text(Point at, std::string_view text, Anchor anchor, std::string_view classes) {
  constexpr std::string_view kAnchors[] = {"start", "middle", "end"};
  body_ += "<text x=\"";
  Coordinate(at.x);
  body_ += "\" y=\"";
  Coordinate(at.y);
  body_ += Concat("\" text-anchor=\"", kAnchors[static_cast<size_t>(anchor)], "\" class=\"",
                  classes, "\">", Escape(text), "</text>");
}

std::string Svg::Finish() && {
  return head_ + body_ + "</svg>";
}

}  // namespace pace
