// The commands of `pace` about one model: import, export, score, generate. The rules
// of commands.h, which includes this, hold.
#ifndef PACE_CLI_MODEL_COMMANDS_H_
#define PACE_CLI_MODEL_COMMANDS_H_

#include <string>
#include <vector>

#include "inference/inference_options.h"

namespace pace {

struct ImportArguments {
  std::string file;       // GGUF or llama2.c
  std::string to;         // the folder to make
  std::string tokenizer;  // tokenizer.json or its folder; llama2.c's tok*.bin
  std::string dtype;      // f32, bf16, f16; empty = f32, but for large models bf16
};
int RunImportCommand(const ImportArguments& arguments);

struct ExportArguments {
  std::string model;
  std::string to;
  std::string format = "hf";  // hf, gguf, llama2c
  std::string dtype;          // empty = as stored
  std::string max_shard_size = "5GB";
  bool no_tokenizer = false;  // gguf
};
int RunExportCommand(const ExportArguments& arguments);

struct ScoreArguments {
  InferenceArguments inference;
  std::string file;  // empty = stdin
};
int RunScoreCommand(const ScoreArguments& arguments);

struct GenerateArguments {
  InferenceArguments inference;
  GenerationOptions generation;
  std::string file;  // empty = stdin
  bool chat = false;
  std::string system;
  std::string thinking = "auto";                // prompt.thinking
  std::vector<std::string> template_variables;  // prompt.template_variables
};
int RunGenerateCommand(const GenerateArguments& arguments);

}  // namespace pace

#endif  // PACE_CLI_MODEL_COMMANDS_H_
