// Pictures of what comparisons found, as SVG files for a page of text.
//
//   for (const ResultsPicture& picture : ResultsPictures(comparisons)) {
//     std::ofstream("docs/images/" + picture.name + ".svg") << picture.svg;
//   }
//
// Drawn are the comparisons that claim a recovered share: accuracy over updates and over time, and
// the shares of all of them with their intervals. Thread-safety: pure functions.
#ifndef PACE_COMPARE_RESULTS_PICTURES_H_
#define PACE_COMPARE_RESULTS_PICTURES_H_

#include <string>
#include <vector>

#include "compare/results_page.h"

namespace pace {

struct ResultsPicture {
  std::string name = {};     // of its file, without the ending
  std::string caption = {};  // one sentence
  std::string svg = {};
};

// In the order of `comparisons`, the shares first. Empty where nothing claims a recovered share.
std::vector<ResultsPicture> ResultsPictures(const std::vector<FinishedComparison>& comparisons);

// The pictures in Markdown, from files in `folder`; "" without pictures.
std::string PicturesText(const std::vector<ResultsPicture>& pictures, const std::string& folder);

}  // namespace pace

#endif  // PACE_COMPARE_RESULTS_PICTURES_H_
