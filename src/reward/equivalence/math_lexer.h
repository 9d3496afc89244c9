// Words of LaTeX-like mathematics.
//
// Spacing, sizing and style commands are dropped. Commands are read by their
// longest known beginning, for models write "\quadx" and "\cdot2".
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_EQUIVALENCE_MATH_LEXER_H_
#define PACE_REWARD_EQUIVALENCE_MATH_LEXER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pace::equiv {

enum class MathToken {
  kNumber,    // digits with at most one point
  kLetter,    // one ASCII letter
  kSymbol,    // a Greek letter or another named symbol, by its name
  kText,      // \text{...} and its kin: what is inside
  kAccent,    // \vec{...}, \bar{...}: "vec:" and what is inside
  kFunction,  // sin, log, max, ...
  kPi,
  kInfinity,
  kFraction,  // \frac
  kRoot,      // \sqrt; "bare" where a whole number may follow without braces
  kBinomial,
  kOver,    // {a \over b}
  kChoose,  // {a \choose b}
  kSum,
  kProduct,
  kPlus,
  kMinus,
  kPlusMinus,
  kMinusPlus,
  kTimes,
  kSlash,
  kColon,
  kModulo,
  kModulus,  // \pmod{...}, (mod ...): what is inside, without space
  kCaret,
  kUnderscore,
  kBang,
  kPercent,
  kDegree,
  kPrime,
  kOpen,   // ( [ { and \{, which is written "S"; \langle is "("
  kClose,  // ) ] } and \}, which is written "S"
  kBar,    // |
  kFloorOpen,
  kFloorClose,
  kCeilOpen,
  kCeilClose,
  kComma,
  kSemicolon,
  kEqual,
  kApproximate,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
  kUnion,
  kIntersection,
  kSetMinus,
  kNamedSet,  // R, N, Z, Q, C
  kEmptySet,
  kMatrixBegin,  // by the name of its environment
  kMatrixEnd,
  kColumn,  // &
  kRow,     // \\ between rows
  kEnd,
};

struct MathWord {
  MathToken token = MathToken::kEnd;
  std::string text;
  bool space_before = false;
};

// The words of a text, a kEnd last; none where something in it is not
// mathematics, or where there are more than `max_words`.
std::optional<std::vector<MathWord>> SplitIntoWords(std::string_view text, size_t max_words);

// What a command ("alpha" for \alpha), a bare word ("sqrt") or a character
// outside ASCII stands for.
struct KnownWord {
  std::string_view name;
  MathToken token = MathToken::kEnd;
  std::string_view text;
  bool skipped = false;  // space and style
};
// The longest known command that `letters` begins with, or null. A kEnd that is
// not skipped is a command known not to be readable here.
const KnownWord* FindCommand(std::string_view letters);
// Null where the whole word is not known.
const KnownWord* FindBareWord(std::string_view word);
const KnownWord* FindCharacter(std::string_view character);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_MATH_LEXER_H_
