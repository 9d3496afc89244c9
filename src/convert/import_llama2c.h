// llama2.c's files as models: Llama, with a tokenizer whose ids are those of
// llama2.c's own encoder.
//
// Two differences from it: a text that spells <unk>, <s> or </s> means those
// tokens, and bytes that are not UTF-8 are replaced before encoding. The model
// ends a text with <s>, so both <s> and </s> end a response.
// Thread-safety: pure functions.
#ifndef PACE_CONVERT_IMPORT_LLAMA2C_H_
#define PACE_CONVERT_IMPORT_LLAMA2C_H_

#include <string>

#include "convert/model_source.h"
#include "convert/tokenizer_spec.h"
#include "core/status.h"
#include "formats/llama2c.h"

namespace pace {

// The vocabulary must begin as llama2.c takes for granted: unknown, begin, end,
// then one token per byte.
Result<TokenizerSpec> Llama2cTokenizer(const Llama2cVocabulary& vocabulary);

// `tokenizer` may be empty: a model without one.
Result<ModelSource> OpenLlama2c(const std::string& path, const std::string& tokenizer);

}  // namespace pace

#endif  // PACE_CONVERT_IMPORT_LLAMA2C_H_
