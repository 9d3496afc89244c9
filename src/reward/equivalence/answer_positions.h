// AnswerPositions: where in a text an answer may be, by kind of position.
//
// Of each kind only the last few are given, in no particular order.
//
// Thread-safety: const methods may be called from any thread.
#ifndef PACE_REWARD_EQUIVALENCE_ANSWER_POSITIONS_H_
#define PACE_REWARD_EQUIVALENCE_ANSWER_POSITIONS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reward/equivalence/plain_numbers.h"

namespace pace::equiv {

// An environment: $...$ and \(...\) within a line, $$...$$ and \[...\], " [...] "
// within a line, and a bare \frac{1}{2}. A percent sign or word after one
// belongs to it.
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

// Where a text switches to mathematics. A match takes time logarithmic in the text, and
// linear in what it holds.
class MathSpans {
 public:
  // Borrows the text.
  explicit MathSpans(std::string_view text);

  // The environment that opens at `at`, with those joined to it, at most six.
  // With `boxed`, only environments that hold a \boxed{...}.
  std::optional<MathSpanList> MatchList(size_t at, bool boxed) const;

  // Whether the bytes from `begin` to `end` stand in "$ ... $" or "\( ... \)" that spans
  // lines and holds no word: no environment, and so no plain number either.
  bool IsBrokenInline(size_t begin, size_t end) const;

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

// One of three: mathematics, a number or arithmetic, or a stretch of text with
// boxes in it.
struct AnswerPosition {
  size_t begin = 0;
  size_t end = 0;
  std::optional<MathSpanList> math;
  std::optional<PlainMatch> plain;
  std::string_view boxes;
};

class AnswerPositions {
 public:
  // Borrows the text.
  explicit AnswerPositions(std::string_view text);

  // "final answer is ... I hope", the phrase of a widely used prompt.
  std::vector<AnswerPosition> Hoped() const;
  // After "final answer ... is".
  std::vector<AnswerPosition> Final() const;
  std::vector<AnswerPosition> Boxed() const;
  // After "answer:", or after "answer" without a colon.
  std::vector<AnswerPosition> Announced(bool colon) const;
  std::vector<AnswerPosition> Anywhere() const;

 private:
  std::optional<AnswerPosition> MathAt(size_t begin, size_t at) const;
  std::optional<AnswerPosition> PlainAt(size_t begin, size_t at) const;
  bool IsBroken(const PlainMatch& match) const;
  // Mathematics or a number after ":" and space.
  std::optional<AnswerPosition> MathAfterIs(size_t begin, size_t at) const;
  std::optional<AnswerPosition> PlainAfterIs(size_t begin, size_t at) const;
  bool IsHoped(size_t end) const;
  std::optional<AnswerPosition> FinalMath(size_t begin) const;
  std::optional<AnswerPosition> FinalPlain(size_t begin) const;
  std::optional<AnswerPosition> AnnouncedMath(size_t begin, size_t at) const;
  std::optional<AnswerPosition> AnnouncedPlain(size_t begin, size_t at) const;
  size_t Advance(size_t at) const;

  std::string_view text_;
  std::string lower_;  // ASCII letters in lower case, byte for byte
  MathSpans spans_;
};

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_ANSWER_POSITIONS_H_
