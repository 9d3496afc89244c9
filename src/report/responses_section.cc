#include <algorithm>

#include "core/concat.h"
#include "report/axes.h"
#include "report/figure.h"
#include "report/sections.h"
#include "report/svg.h"

namespace pace {
namespace {

constexpr size_t kMostRuns = 4;  // with their responses; more would bury the page

std::string Facts(const ResponseRecord& record) {
  std::string out = Concat("reward ", Readable(record.head.reward), ", ",
                           record.correct ? "correct" : "not correct");
  if (record.head.reason.has_value()) {
    out += Concat(", lag ", Readable(record.lag), " steps (its group waited ",
                  Readable(record.waiting), ", generation ", Readable(record.generation), "), ",
                  record.admitted ? "admitted: " : "rejected: ", Name(*record.head.reason));
  }
  out += Concat(", ", record.length, record.length == 1 ? " token" : " tokens");
  if (record.finish == "max_tokens") out += ", cut off at the limit";
  return out;
}

std::string Titled(std::string_view title, std::string_view text, std::string_view classes) {
  return Concat("<div class=\"said ", classes, "\"><span>", title, "</span><pre>",
                EscapeLines(text), "</pre></div>");
}

std::string OneResponse(const ResponseRecord& record, const std::string& heading) {
  std::string out = Concat("<article class=\"response\"><h4>", Escape(heading), "</h4><p>",
                           Escape(Facts(record)), "</p>", Titled("prompt", record.prompt, "asked"));
  for (const ResponseTurn& turn : record.turns) {
    out += Titled(turn.is_tool ? "tool" : "response", turn.text, turn.is_tool ? "tool" : "");
  }
  out +=
      Concat("<p>Extracted answer: ",
             record.extracted.has_value()
                 ? Concat("<code>", Escape(Shortened(*record.extracted, 200)), "</code>")
                 : std::string("none"),
             "; the problem\u2019s: <code>", Escape(Shortened(record.answer, 200)), "</code></p>");
  return out + "</article>";
}

// "Best, admitted under_cutoff; step 12"
std::string HeadingOf(const ResponseRecord& record) {
  std::string out;
  for (const std::string& role : record.picked) {
    out += Concat(out.empty() ? "" : ", ", role == "best" || role == "worst" || role == "random"
                                               ? role
                                               : Concat("verdict ", role));
  }
  if (!out.empty() && out.front() >= 'a' && out.front() <= 'z') {
    out.front() = static_cast<char>(out.front() - 'a' + 'A');
  }
  return Concat(out, out.empty() ? "Step " : ", step ", record.head.step);
}

std::string ResponsesOf(const RunData& run, const std::string& name, bool folded) {
  std::string content;
  for (const ResponseRecord& record : run.responses) {
    content += OneResponse(record, HeadingOf(record));
  }
  if (!content.empty()) content = Concat("<div class=\"responses\">", content, "</div>");
  std::string evaluated;
  for (const ResponseRecord& record : run.evaluated) {
    evaluated += OneResponse(record, Concat(Shortened(record.benchmark, 60), ", problem ",
                                            record.problem, ", version ", record.head.step));
  }
  if (!evaluated.empty()) {
    content += Concat("<details><summary>Responses of the last evaluation",
                      "</summary><div class=\"responses\">", evaluated, "</div></details>");
  }
  if (!folded) return content;
  return Concat("<details><summary>", Escape(name), "</summary>", content, "</details>");
}

}  // namespace

std::string ResponsesSection(const ReportView& view) {
  std::string content;
  size_t num_shown = 0, num_runs = 0;
  for (size_t i = 0; i < view.runs.size(); ++i) {
    const RunData& run = view.runs[i];
    if (run.responses.empty() && run.evaluated.empty()) continue;
    if (++num_runs > kMostRuns) continue;
    ++num_shown;
    content += ResponsesOf(run, view.summaries[i].name, view.runs.size() > 1);
  }
  if (content.empty()) return "";
  if (num_runs > num_shown) {
    content += MissingNote(Concat("Only ", num_shown, " of ", num_runs, " runs are shown here."));
  }
  return RenderSection("responses", "Responses",
                       "The best and the worst reward, two responses at random, and one for each "
                       "reason of a verdict, from the sample that responses.jsonl holds.",
                       content);
}

}  // namespace pace
