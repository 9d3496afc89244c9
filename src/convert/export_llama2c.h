// Model folders as llama2.c files, version 0.
//
// That format knows Llama alone, in float32, with base 10,000, epsilon 1e-5,
// heads that split the hidden size and no biases; anything else is refused by
// name. The tokenizer is not part of it.
#ifndef PACE_CONVERT_EXPORT_LLAMA2C_H_
#define PACE_CONVERT_EXPORT_LLAMA2C_H_

#include <string>

#include "convert/model_source.h"
#include "core/status.h"

namespace pace {

// REQUIRES: a source that gives its tensors in any order (OpenModelFolder's)
Status ExportLlama2c(const std::string& path, const ModelSource& source);

}  // namespace pace

#endif  // PACE_CONVERT_EXPORT_LLAMA2C_H_
