// What a number counts, where that is a known measure: "5 cm" and "5 m" differ.
//
// Units are dropped before answers are compared, for a response may leave them out;
// but where both sides name one, it must be the same. Measures are not converted.
//
//   MeasureAtEnd("5\\text{ cm}^2") == "cm^2"
//   MeasureAtBegin(" miles per hour, so") == "mi/h"
//
// Thread-safety: functions of their arguments.
#ifndef PACE_REWARD_EQUIVALENCE_MEASURES_H_
#define PACE_REWARD_EQUIVALENCE_MEASURES_H_

#include <string>
#include <string_view>

namespace pace::equiv {

// The measure that follows the last number of an answer and ends it, or the dollars
// that stand before it; "" where there is none that is known.
std::string MeasureAtEnd(std::string_view answer);
// The measure that begins the text, whatever follows it.
std::string MeasureAtBegin(std::string_view text);

// Whether both are known and not the same.
bool AreDifferentMeasures(std::string_view one, std::string_view other);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_MEASURES_H_
