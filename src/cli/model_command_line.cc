// import, export, score and generate on the command line.
#include "cli/command_line.h"

namespace pace {
namespace {

void AddInference(CLI::App* command, InferenceArguments& arguments) {
  command->add_option("--model", arguments.model, "Folder that holds config.json and the weights")
      ->required();
  command->add_option("--dtype", arguments.dtype, "What to compute with: f32 or bf16")
      ->capture_default_str();
  command->add_option("--device", arguments.device, "cpu, or cuda in a build with it")
      ->capture_default_str();
  command->add_option("--threads", arguments.num_threads, "Threads; 0 = one per core")
      ->check(CLI::Range(0, 4096));
  command->add_option("--kv-memory", arguments.kv_memory,
                      "Memory for keys and values, such as 512MiB (default: 1GiB, or less where "
                      "that is enough)");
}

}  // namespace

void AddImport(CLI::App& app, ImportArguments& arguments) {
  CLI::App* command =
      AddCommand(app, "import", "Make a Hugging Face folder of a GGUF or llama2.c file",
                 "pace import SmolLM2-135M-Instruct.Q4_1.gguf --to models/smollm2\n"
                 "  pace import stories260K.bin --tokenizer tok512.bin --to models/stories");
  command->add_option("file", arguments.file, "A GGUF file, or a model file of llama2.c")
      ->required();
  command->add_option("--to", arguments.to, "The folder to make; it must not be there, or be empty")
      ->required();
  command->add_option("--tokenizer", arguments.tokenizer,
                      "llama2.c: its tokenizer file; GGUF: a tokenizer.json to use instead");
  command->add_option("--dtype", arguments.dtype,
                      "f32, bf16 or f16 (default: f32, above a billion parameters bf16)");
}

void AddExport(CLI::App& app, ExportArguments& arguments) {
  CLI::App* command =
      AddCommand(app, "export", "Write a model folder in another format or dtype",
                 "pace export --model models/smollm2 --to smollm2.gguf --format gguf --dtype q8_0\n"
                 "  pace export --model models/smollm2 --to models/smollm2-bf16 --dtype bf16");
  command->add_option("--model", arguments.model, "Folder that holds config.json and the weights")
      ->required();
  command->add_option("--to", arguments.to, "The folder (hf) or file to write")->required();
  command->add_option("--format", arguments.format, "hf, gguf or llama2c")
      ->check(CLI::IsMember({"hf", "gguf", "llama2c"}))
      ->capture_default_str();
  command->add_option("--dtype", arguments.dtype,
                      "f32, bf16, f16; gguf also q8_0 (default: as stored)");
  command->add_option("--max-shard-size", arguments.max_shard_size, "hf: bytes of one file")
      ->capture_default_str();
  command->add_flag("--no-tokenizer", arguments.no_tokenizer, "gguf: the model alone");
}

void AddScore(CLI::App& app, ScoreArguments& arguments) {
  CLI::App* score = AddCommand(
      app, "score", "Log-probability of each token given those before it, JSON Lines in and out",
      "echo '{\"ids\": [1, 403, 407]}' | pace score --model models/stories");
  AddInference(score, arguments.inference);
  score->add_option("file", arguments.file,
                    "Lines of {\"ids\"}, {\"text\"} or {\"messages\"} (default: stdin)");
}

void AddGenerate(CLI::App& app, GenerateArguments& arguments) {
  CLI::App* generate = AddCommand(
      app, "generate", "Generate text: a chat in the terminal, or JSON Lines in and out",
      "pace generate --model models/smollm2\n"
      "  echo '{\"text\": \"Once upon\"}' | pace generate --model models/stories --greedy");
  GenerationOptions& options = arguments.generation;
  AddInference(generate, arguments.inference);
  generate->add_option("file", arguments.file,
                       "Lines of {\"ids\"}, {\"text\"} or {\"messages\"} (default: stdin; from a "
                       "terminal: a chat)");
  CLI::Option* greedy = generate->add_flag_callback(
      "--greedy", [&options] { options.sampling.temperature = 0; }, "Take the likeliest token");
  generate->add_option("--temperature", options.sampling.temperature, "0 = greedy")
      ->excludes(greedy)
      ->capture_default_str();
  generate->add_option("--top-k", options.sampling.top_k, "Keep the k likeliest tokens; 0 = all");
  generate->add_option("--top-p", options.sampling.top_p,
                       "Keep the likeliest tokens that make up this share; 1 = all");
  generate->add_option("--min-p", options.sampling.min_p,
                       "Keep tokens this likely, as a share of the likeliest; 0 = all");
  generate->add_option("--seed", options.seed, "Same seed, same text")->capture_default_str();
  generate->add_option("--num-responses", options.num_responses, "Responses to each prompt")
      ->capture_default_str();
  generate->add_option("--max-tokens", options.max_tokens,
                       "Tokens of a response at most (default: 512, less where the model's "
                       "positions end)");
  generate->add_flag("--ignore-eos", options.ignore_eos, "Go on behind the token that ends a text");
  generate
      ->add_option("--stop", options.stop_strings,
                   "A text that ends a response; give it again for more")
      ->allow_extra_args(false);
  generate->add_flag("--chat", arguments.chat, "A chat, also where stdin is no terminal");
  generate->add_option("--system", arguments.system, "A system message for the chat");
  generate
      ->add_option("--thinking", arguments.thinking,
                   "The chat template's enable_thinking: on, off or auto (undefined)")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  generate
      ->add_option("--template-variable", arguments.template_variables,
                   "NAME=VALUE for the chat template (JSON, else text); give it again for more")
      ->allow_extra_args(false);
}

}  // namespace pace
