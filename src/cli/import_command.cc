// pace import
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "cli/command.h"
#include "convert/import_gguf.h"
#include "convert/llama2c_model.h"
#include "core/file.h"
#include "inference/inference_options.h"
#include "terminal/progress.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

struct ImportArguments {
  std::string file;       // GGUF or llama2.c
  std::string to;         // the folder to make
  std::string tokenizer;  // tokenizer.json or its folder; llama2.c's tok*.bin
  std::string dtype;      // f32, bf16, f16; empty = f32, but for large models bf16
};

// Above this, float32 is more than most want on their disk.
constexpr int64_t kMaxF32Parameters = 1'000'000'000;

bool IsGguf(const std::string& path) {
  const Result<MappedFile> file = MappedFile::Open(path);
  return file.ok() && file->text().starts_with("GGUF");
}

// A folder with tokenizer.json, or that file.
bool IsTokenizerJson(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) || path.extension() == ".json";
}

Status TakeTokenizerFiles(const std::string& given, ModelSource& source) {
  std::error_code error;
  std::filesystem::path folder = given;
  if (!std::filesystem::is_directory(folder, error)) {
    if (folder.filename() != "tokenizer.json") {
      return InvalidArgument("--tokenizer ", given, ": must be a tokenizer.json or its folder");
    }
    folder = folder.has_parent_path() ? folder.parent_path() : ".";
  }
  PACE_RETURN_IF_ERROR(Tokenizer::Load(folder.string()).status());
  PACE_ASSIGN_OR_RETURN(source.texts, ReadTokenizerFiles(folder.string()));
  return Status::Ok();
}

Result<ModelSource> OpenSource(const ImportArguments& arguments) {
  const bool takes_files = !arguments.tokenizer.empty() && IsTokenizerJson(arguments.tokenizer);
  const bool is_gguf = IsGguf(arguments.file);
  if (is_gguf && !arguments.tokenizer.empty() && !takes_files) {
    return InvalidArgument("--tokenizer ", arguments.tokenizer,
                           ": must be a tokenizer.json or its folder");
  }
  PACE_ASSIGN_OR_RETURN(ModelSource source,
                        is_gguf
                            ? OpenGguf(arguments.file, takes_files)
                            : OpenLlama2c(arguments.file, takes_files ? "" : arguments.tokenizer));
  if (takes_files) PACE_RETURN_IF_ERROR(TakeTokenizerFiles(arguments.tokenizer, source));
  return source;
}

Status Import(const ImportArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const ModelSource source, OpenSource(arguments));
  ModelFolderOptions options;
  const int64_t num_parameters = source.config.num_parameters();
  options.dtype = num_parameters > kMaxF32Parameters ? Dtype::kBF16 : Dtype::kF32;
  if (!arguments.dtype.empty()) {
    PACE_ASSIGN_OR_RETURN(const Dtype dtype, ParseModelDtype(arguments.dtype));
    options.dtype = dtype;
  }
  {
    Progress progress(arguments.to, "tensors", 1);
    options.progress = [&](int64_t done, int64_t total) { progress.Update(0, done, total); };
    PACE_RETURN_IF_ERROR(WriteModelFolder(arguments.to, source, options));
  }
  std::fprintf(stderr, "%s: %s, %lld parameters as %s, %s\n", arguments.to.c_str(),
               std::string(ArchitectureName(source.config.architecture)).c_str(),
               static_cast<long long>(num_parameters),
               std::string(DtypeName(options.dtype)).c_str(),
               source.texts.empty() ? "without a tokenizer (give one with --tokenizer)"
                                    : "with its tokenizer");
  return Status::Ok();
}

}  // namespace

void AddImport(const CommandLine& line) {
  line.Add<ImportArguments>(
      "import", "Make a Hugging Face folder of a GGUF or llama2.c file",
      "pace import SmolLM2-135M-Instruct.Q4_1.gguf --to models/smollm2\n"
      "  pace import stories260K.bin --tokenizer tok512.bin --to models/stories",
      [](CLI::App& app, ImportArguments& arguments) {
        app.add_option("file", arguments.file, "A GGUF file, or a model file of llama2.c")
            ->required();
        app.add_option("--to", arguments.to, "The folder to make; it must not exist, or be empty")
            ->required();
        app.add_option("--tokenizer", arguments.tokenizer,
                       "llama2.c: its tokenizer file; GGUF: a tokenizer.json to use instead");
        app.add_option("--dtype", arguments.dtype,
                       "f32, bf16 or f16 (default: f32, above a billion parameters bf16)");
      },
      Import);
}

}  // namespace pace
