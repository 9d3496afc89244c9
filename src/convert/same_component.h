// Whether two components of tokenizer.json do the same.
#ifndef PACE_CONVERT_SAME_COMPONENT_H_
#define PACE_CONVERT_SAME_COMPONENT_H_

#include <optional>
#include <string_view>

#include "text/tokenizer/tokenizer_file.h"

namespace pace {

// Sequences count by their steps, however they nest: a sequence of one step is
// that step. Offsets and places in the file do not count.
bool SameComponent(const std::optional<TokenizerComponent>& a,
                   const std::optional<TokenizerComponent>& b);

// A file that has only these components, given in JSON. REQUIRES: they are valid
TokenizerFile FileOfComponents(std::string_view normalizer, std::string_view pre_tokenizer,
                               std::string_view decoder);

}  // namespace pace

#endif  // PACE_CONVERT_SAME_COMPONENT_H_
