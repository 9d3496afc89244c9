// MathSpans: where a text switches to mathematics.
//
// Environments are $...$ and \(...\) within a line, $$...$$ and \[...\], " [...] "
// within a line, and a bare \frac{1}{2}. A percent sign or word after one
// belongs to it.
//
// A match takes time logarithmic in the text, and linear in what it holds.
// Thread-safety: const methods may be called from any thread.
#ifndef PACE_REWARD_EQUIVALENCE_MATH_SPANS_H_
#define PACE_REWARD_EQUIVALENCE_MATH_SPANS_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace pace::equiv {

struct MathSpan {
  std::string_view content;
  bool has_percent = false;
  size_t end = 0;  // after the closing sign, space and percent included
};

// Environments that "and", "or" or a comma joins: one answer in parts.
struct MathSpanList {
  std::vector<MathSpan> spans;
  size_t end = 0;
};

class MathSpans {
 public:
  // Borrows the text.
  explicit MathSpans(std::string_view text);

  // The environment that opens at `at`, with those joined to it, at most six.
  // With `boxed`, only environments that hold a \boxed{...}.
  std::optional<MathSpanList> MatchList(size_t at, bool boxed) const;

 private:
  std::optional<MathSpan> Match(size_t at, bool boxed) const;
  std::optional<MathSpan> MatchDisplay(size_t at) const;
  std::optional<MathSpan> MatchInline(size_t at) const;
  std::optional<MathSpan> MatchBrackets(size_t at) const;
  std::optional<MathSpan> MatchFraction(size_t at) const;
  void TakePercent(MathSpan& span) const;

  std::string_view text_;
  // Where closing signs and lines end, in order: found once, for a text of
  // nothing but opening signs would be searched from each of them.
  std::vector<size_t> dollars_;      // $$
  std::vector<size_t> brackets_;     // \]
  std::vector<size_t> parentheses_;  // \)
  std::vector<size_t> lines_;
};

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_MATH_SPANS_H_
