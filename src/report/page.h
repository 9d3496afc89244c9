// The frame of a page, one file with style, hatchings and script inside, and of its sections;
// and of a picture that stands alone.
//
//   html = RenderPage({.title = "tiny - pace report", .content = "<header>..."});
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_PAGE_H_
#define PACE_REPORT_PAGE_H_

#include <string>
#include <string_view>

namespace pace {

struct Page {
  std::string title;        // of the window; escaped here
  std::string content;      // HTML of <main>
  bool is_one_run = false;  // a page about one run needs no key to its colours
};

std::string RenderPage(const Page& page);

// <section> with heading, introduction and content.
std::string RenderSection(std::string_view id, std::string_view heading,
                          std::string_view introduction, const std::string& content);
// A picture of Svg as a file of its own, with its style inside; light or dark as the reader's.
// REQUIRES: svg is what Svg::Finish returned
std::string StandalonePicture(std::string_view svg);
// A paragraph about something that cannot be shown.
std::string MissingNote(std::string_view text);

}  // namespace pace

#endif  // PACE_REPORT_PAGE_H_
