// The verifier that verl's `data_source` stands for.
//
// verl scores a row by its data source (verl/utils/reward_score); these are the
// sources of its mathematical rules:
//
//   openai/gsm8k                                        gsm8k
//   lighteval/MATH, DigitalLearningGmbH/MATH-lighteval,
//   HuggingFaceH4/MATH-500                              math
//   math_dapo, math, math_dapo_reasoning, aime*         dapo
//   numina_*                                            equiv (verl: PRIME's rules)
//
// Thread-safety: a function of its argument.
#ifndef PACE_REWARD_DATA_SOURCE_H_
#define PACE_REWARD_DATA_SOURCE_H_

#include <optional>
#include <string_view>

#include "reward/verifier.h"

namespace pace {

// None where we have no verifier for the source.
std::optional<VerifierMode> VerifierOfDataSource(std::string_view data_source);

}  // namespace pace

#endif  // PACE_REWARD_DATA_SOURCE_H_
