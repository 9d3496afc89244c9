// FindAnswer: finds the answer of a text and parses it as mathematics.
//
// A text that is nothing but mathematics or a number is its own answer, and where it
// cannot be read it has no other; text after "not" is none. In any other
// the kinds of positions are tried in this order, of each the last one first, until
// one can be read; where there is a box, nothing after it is tried:
//   "final answer is ... I hope"
//   \boxed{...}, and what follows "final answer ... is"
//   what follows "answer:"
//   what follows "answer"
//   any mathematics, arithmetic or number
//
// Thread-safety: a function of its argument.
#ifndef PACE_REWARD_EQUIVALENCE_ANSWER_SEARCH_H_
#define PACE_REWARD_EQUIVALENCE_ANSWER_SEARCH_H_

#include <string>
#include <string_view>
#include <vector>

#include "reward/equivalence/math_node.h"

namespace pace::equiv {

struct FoundAnswer {
  // How it can be read: mostly one way; "1,5" is a number and a list. Empty
  // where nothing can be read.
  std::vector<MathNodePtr> readings;
  // The position that could be read, or else the first one, tidied; empty where
  // there is none.
  std::string text;
  // The first position tried, tidied, for answers that are compared as text.
  std::string first_text;
  // What the number in it counts, as measures.h says; "" where it does not say.
  std::string measure;
  // How much was read as mathematics before one position made sense.
  size_t num_read_bytes = 0;
};

FoundAnswer FindAnswer(std::string_view text);

// A tidied answer as a tree; the end of a chain of equations where only that can
// be read. Null where nothing can.
MathNodePtr ReadAnswer(std::string_view tidied);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_ANSWER_SEARCH_H_
