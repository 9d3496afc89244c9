#include "report/figure.h"

#include <array>

#include "core/concat.h"
#include "report/svg.h"

namespace pace {
namespace {

constexpr size_t kNumColours = 8;
constexpr std::array<std::string_view, 4> kDashes = {"", "7 3", "2 3", "9 3 2 3"};

// Openings, in the order of KeyShape.
constexpr std::array<std::string_view, 3> kShapes = {
    "<path d=\"M1 1H21V11H1Z\" class=\"",
    "<path d=\"M1 6H21\" class=\"line ",
    "<path d=\"M11 0L17 6L11 12L5 6Z\" class=\"",
};

}  // namespace

std::string RunStroke(size_t run) {
  return Concat("s", run % kNumColours);
}
std::string RunFill(size_t run) {
  return Concat("f", run % kNumColours);
}

// Two runs of one colour never share their dashes.
std::string_view RunDashes(size_t run) {
  return kDashes[(run + run / kNumColours) % kDashes.size()];
}

KeyEntry RunLineKey(size_t run, const std::string& name) {
  return {.label = name,
          .classes = RunStroke(run),
          .shape = KeyShape::kLine,
          .dashes = RunDashes(run),
          .run = run};
}

std::string RenderKey(const std::vector<KeyEntry>& key) {
  if (key.empty()) return "";
  std::string out = "<ul class=\"key\">";
  for (const KeyEntry& entry : key) {
    out += "<li";
    if (entry.run.has_value()) out += Concat(" data-key=\"", *entry.run, "\"");
    out += "><svg class=\"swatch\" viewBox=\"0 0 22 12\" aria-hidden=\"true\">";
    out += Concat(kShapes[static_cast<size_t>(entry.shape)], entry.classes, "\"");
    if (!entry.dashes.empty()) out += Concat(" stroke-dasharray=\"", entry.dashes, "\"");
    out += Concat("/></svg>", Escape(entry.label), "</li>");
  }
  return out + "</ul>";
}

std::string RenderFigure(const Figure& figure, const std::string& picture) {
  return Concat("<figure class=\"chart", figure.wide ? " wide" : "", "\" data-chart=\"",
                Escape(figure.name), "\"><figcaption>", Escape(figure.caption),
                "</figcaption><div>", RenderKey(figure.key), "</div>", picture,
                "<div class=\"note\">", Escape(figure.note), "</div></figure>\n");
}

std::string Shortened(std::string_view text, size_t most) {
  size_t num_characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins_character = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (!begins_character) continue;
    if (++num_characters > most) return Concat(text.substr(0, i), "\u2026");
  }
  return std::string(text);
}

}  // namespace pace
