// TokenId: the number of a token in a tokenizer's vocabulary.
#ifndef PACE_CORE_TOKEN_ID_H_
#define PACE_CORE_TOKEN_ID_H_

#include <cstdint>

namespace pace {

using TokenId = int32_t;

}  // namespace pace

#endif  // PACE_CORE_TOKEN_ID_H_
