// llama2.c's files: read as Llama models with a tokenizer whose ids are those of llama2.c's own
// encoder, and written.
//
// Two differences from llama2.c: a text that spells <unk>, <s> or </s> means those tokens, and
// bytes that are not UTF-8 are replaced before encoding. The model ends a text with <s>, so both
// <s> and </s> end a response.
// Thread-safety: pure functions.
#ifndef PACE_CONVERT_LLAMA2C_MODEL_H_
#define PACE_CONVERT_LLAMA2C_MODEL_H_

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

// Writes a model folder as a llama2.c file, version 0. The format holds Llama alone, in float32,
// with base 10,000, epsilon 1e-5, heads that split the hidden size and no biases; anything else
// is refused by name. The tokenizer is not part of it.
// REQUIRES: a source that gives its tensors in any order (OpenModelFolder's)
Status ExportLlama2c(const std::string& path, const ModelSource& source);

}  // namespace pace

#endif  // PACE_CONVERT_LLAMA2C_MODEL_H_
