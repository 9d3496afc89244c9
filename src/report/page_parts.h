// The fixed texts of the page.
#ifndef PACE_REPORT_PAGE_PARTS_H_
#define PACE_REPORT_PAGE_PARTS_H_

#include <string_view>

namespace pace {

std::string_view PageStyle();     // CSS
std::string_view PageScript();    // JavaScript
std::string_view PagePatterns();  // SVG with the hatchings that charts refer to

}  // namespace pace

#endif  // PACE_REPORT_PAGE_PARTS_H_
