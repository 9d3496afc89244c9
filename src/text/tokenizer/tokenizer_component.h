// Reads one component of a tokenizer.json: its type and all its fields, parts
// included.
#ifndef PACE_TEXT_TOKENIZER_TOKENIZER_COMPONENT_H_
#define PACE_TEXT_TOKENIZER_TOKENIZER_COMPONENT_H_

#include <optional>
#include <string>

#include "core/json_scanner.h"
#include "text/tokenizer/tokenizer_file.h"

namespace pace {

// Reads a component or null; `where` is its place in the file.
bool ScanComponent(JsonScanner& scan, const std::string& where,
                   std::optional<TokenizerComponent>& out);

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_TOKENIZER_COMPONENT_H_
