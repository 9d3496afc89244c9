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

#include "reward/equivalence/math_spans.h"
#include "reward/equivalence/plain_numbers.h"

namespace pace::equiv {

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
