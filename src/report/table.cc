#include "report/table.h"

#include "core/concat.h"
#include "report/figure.h"
#include "report/svg.h"

namespace pace {
namespace {

std::string Swatch(size_t run) {
  std::string dashes;
  if (!RunDashes(run).empty()) dashes = Concat(" stroke-dasharray=\"", RunDashes(run), "\"");
  return Concat(
      "<svg class=\"swatch\" viewBox=\"0 0 22 12\" aria-hidden=\"true\"><path d=\"M1 "
      "6L21 6\" class=\"line ",
      RunStroke(run), "\"", dashes, "/></svg>");
}

// Lets long keys break where a reader would.
std::string Breakable(std::string_view escaped) {
  std::string out;
  for (const char c : escaped) {
    out += c;
    if (c == '.' || c == '_') out += "<wbr>";
  }
  return out;
}

}  // namespace

std::string RenderTable(const Table& table) {
  // The caption stands outside: it must not scroll away with the columns.
  const std::string caption = Escape(table.caption);
  std::string out = Concat("<div class=\"panel\"><p class=\"title\">", caption,
                           "</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
                           caption, "\"><table aria-label=\"", caption,
                           "\"><thead><tr><th scope=\"col\">", Escape(table.corner), "</th>");
  for (const std::string& column : table.columns) {
    out += Concat("<th scope=\"col\">", Escape(column), "</th>");
  }
  out += "</tr></thead><tbody>";
  for (const TableRow& row : table.rows) {
    out += "<tr><th scope=\"row\">";
    if (row.run.has_value()) out += Swatch(*row.run);
    out += Concat(Breakable(Escape(row.head)), "</th>");
    for (const std::string& cell : row.cells) out += Concat("<td>", Escape(cell), "</td>");
    out += "</tr>";
  }
  return out + "</tbody></table></div></div>\n";
}

}  // namespace pace
