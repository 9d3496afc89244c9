// TextTable: columns that line up, for people.
#ifndef PACE_TERMINAL_TEXT_TABLE_H_
#define PACE_TERMINAL_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace pace {

class TextTable {
 public:
  // Cells: "3.14" with the given number of decimals; "37 %".
  static std::string Fixed(double value, int decimals);
  static std::string Percent(double share);

  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  // As many cells as the header.
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // The first column to the left, the others to the right.
  std::string Render() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pace

#endif  // PACE_TERMINAL_TEXT_TABLE_H_
