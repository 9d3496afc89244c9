// MathGrammar: the recursive-descent parser of ParseMath.
//
// One method per rule, from lists down to atoms; every rule returns null where
// the words do not fit, and no rule tries twice. Lists and relations are in
// math_parser.cc, arithmetic in math_terms.cc, atoms in math_atoms.cc.
//
// Thread-safety: none.
#ifndef PACE_REWARD_EQUIVALENCE_MATH_GRAMMAR_H_
#define PACE_REWARD_EQUIVALENCE_MATH_GRAMMAR_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reward/equivalence/math_lexer.h"
#include "reward/equivalence/math_node.h"

namespace pace::equiv {

class MathGrammar {
 public:
  // REQUIRES: the last word is a kEnd
  explicit MathGrammar(std::vector<MathWord> words) : words_(std::move(words)) {}

  MathNodePtr ParseWhole();

 private:
  // Lists between commas, of which semicolons make groups.
  using Groups = std::vector<std::vector<MathNodePtr>>;

  const MathWord& word(size_t ahead = 0) const;
  MathToken token(size_t ahead = 0) const { return word(ahead).token; }
  bool Is(MathToken token, std::string_view text, size_t ahead = 0) const;
  bool Take(MathToken token);
  bool TakeClose(std::string_view texts);

  std::optional<Groups> ParseGroups();
  MathNodePtr ParseElement();
  MathNodePtr ParseDifference();
  MathNodePtr ParseUnion();
  MathNodePtr ParseIntersection();

  MathNodePtr ParseSum();
  MathNodePtr ParseTerm();
  MathNodePtr ParseSigned();
  // Factors side by side; `no_functions` ends before the next function name.
  MathNodePtr ParseProduct(bool no_functions);
  MathNodePtr ParseFactor();
  MathNodePtr ParsePowers(MathNodePtr base);
  MathNodePtr ParseExponent();
  bool BeginsFactor() const;
  bool TakeUnit();
  // Mixed numbers: 2\frac{1}{3}, 2 1/3.
  MathNodePtr ParseMixed();
  // After a degree sign: 15' or 15' 30''.
  MathNodePtr ParseMinutes(const MathNodePtr& degrees);

  MathNodePtr ParseAtom();
  MathNodePtr ParseNumber();
  MathNodePtr ParseName();
  MathNodePtr ParseCall(const std::string& name);
  MathNodePtr ParseBracket();
  MathNodePtr ParseBetween(MathToken close, const char* function);
  MathNodePtr ParseFraction();
  MathNodePtr ParseRoot();
  MathNodePtr ParseBinomial();
  MathNodePtr ParseFunction();
  MathNodePtr ParseRange();
  MathNodePtr ParseMatrix();
  // What \frac, \sqrt and ^ take: a group in braces, one digit, or one atom.
  MathNodePtr ParseArgument(bool whole_number);
  // The words of a subscript, run together: x_{12} has "12".
  std::optional<std::string> ParseSubscript();
  bool LooksLikeCall() const;

  std::vector<MathWord> words_;
  size_t at_ = 0;
  int depth_ = 0;
  // Whether a "|" closes the innermost bar instead of opening one.
  bool in_bars_ = false;

  friend class MathDepth;
};

// Counts nesting for as long as it lives.
class MathDepth {
 public:
  explicit MathDepth(MathGrammar& grammar) : grammar_(grammar) { ++grammar_.depth_; }
  ~MathDepth() { --grammar_.depth_; }
  MathDepth(const MathDepth&) = delete;
  MathDepth& operator=(const MathDepth&) = delete;

  bool TooDeep() const;

 private:
  MathGrammar& grammar_;
};

// Every member with a +- in it becomes two.
std::vector<MathNodePtr> ExpandSigns(const std::vector<MathNodePtr>& members);

// The list as one node: its only member, a set, or a set of tuples where
// semicolons part longer lists.
MathNodePtr CombineGroups(std::vector<std::vector<MathNodePtr>> groups);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_MATH_GRAMMAR_H_
