// A page as one file: style, hatchings and script are inside.
//
//   html = RenderPage({.title = "tiny - pace report", .content = "<header>..."});
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_PAGE_H_
#define PACE_REPORT_PAGE_H_

#include <string>

namespace pace {

struct Page {
  std::string title;        // of the window; escaped here
  std::string content;      // HTML of <main>
  bool is_one_run = false;  // a page about one run needs no key to its colours
};

std::string RenderPage(const Page& page);

}  // namespace pace

#endif  // PACE_REPORT_PAGE_H_
