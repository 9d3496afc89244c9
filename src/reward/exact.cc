#include "reward/exact.h"

#include <string>

#include "reward/python_characters.h"

namespace pace {

Verification VerifyExact(std::string_view response, std::string_view answer) {
  const std::string_view ours = StripSpace(response);
  return ZeroOrOne(ours == StripSpace(answer), std::string(ours));
}

}  // namespace pace
