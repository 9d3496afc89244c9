// Words after a number that say what it counts: "5 cm", "12 students".
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_EQUIVALENCE_UNITS_H_
#define PACE_REWARD_EQUIVALENCE_UNITS_H_

#include <string>
#include <string_view>

namespace pace::equiv {

// Whether the word, its plural included, is a known unit. Case is dropped.
bool IsUnitWord(std::string_view word);

// The text without units at its end: a \text{...} or \mbox{...} there, with a
// power or without, then up to three unit words that follow a digit, a
// brace or space. What would leave nothing, or an operator at the end, stays.
std::string WithoutUnits(std::string_view text);

// Whether the last words of two texts are opposites: "10 am" and "10 pm", "5%
// profit" and "5% loss". Units are dropped, but these say more than a unit.
bool EndInOpposites(std::string_view one, std::string_view other);

// Measures: the units that must agree where both answers name one, so that "5 cm" and "5 m"
// differ. (Other units are dropped before answers are compared, since a response may leave them
// out.) Measures are not converted.
//
//   MeasureAtEnd("5\\text{ cm}^2") == "cm^2"
//   MeasureAtBegin(" miles per hour, so") == "mi/h"
//
// The measure that follows the last number of an answer and ends it, or the dollars
// that stand before it; "" where there is none that is known.
std::string MeasureAtEnd(std::string_view answer);
// The measure that begins the text, whatever follows it.
std::string MeasureAtBegin(std::string_view text);

// Whether both are known and not the same.
bool AreDifferentMeasures(std::string_view one, std::string_view other);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_UNITS_H_
