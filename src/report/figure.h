// A figure: caption, key, picture and note, as one HTML element.
//
// Every figure is <figure class="chart" data-chart="NAME">; what it draws from
// data has class "mark". Thread-safety: pure functions.
#ifndef PACE_REPORT_FIGURE_H_
#define PACE_REPORT_FIGURE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pace {

// How a run looks wherever it is drawn: eight colours, and dashes so that
// colour is never the only difference.
std::string RunStroke(size_t run);       // class of a line
std::string RunFill(size_t run);         // class of an area
std::string_view RunDashes(size_t run);  // of a line; empty = solid

enum class KeyShape { kBox, kLine, kDiamond };

// One entry of a key.
struct KeyEntry {
  std::string label;
  std::string classes;  // as its marks have
  KeyShape shape = KeyShape::kBox;
  std::string_view dashes = {};
  std::optional<size_t> run = {};
};

// The entry of a run that is drawn as a line.
KeyEntry RunLineKey(size_t run, const std::string& name);

struct Figure {
  std::string name;       // data-chart
  std::string caption;    // a short title
  std::string note = {};  // below the picture; may be empty
  std::vector<KeyEntry> key = {};
  bool wide = false;  // takes the whole width of the page
};

std::string RenderKey(const std::vector<KeyEntry>& key);
std::string RenderFigure(const Figure& figure, const std::string& picture);

// At most `most` characters, the rest an ellipsis; never splits a character.
std::string Shortened(std::string_view text, size_t most);

}  // namespace pace

#endif  // PACE_REPORT_FIGURE_H_
