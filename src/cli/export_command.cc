// pace export
#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "convert/export_gguf.h"
#include "convert/llama2c_model.h"
#include "convert/model_source.h"
#include "inference/inference_options.h"
#include "terminal/progress.h"
#include "terminal/terminal_text.h"

namespace pace {
namespace {

struct ExportArguments {
  std::string model;
  std::string to;
  std::string format = "hf";  // hf, gguf, llama2c
  std::string dtype;          // empty = as stored
  std::string max_shard_size = "5GB";
  bool no_tokenizer = false;  // gguf
};

Status ExportFolder(const ExportArguments& arguments, const ModelSource& source,
                    Progress& progress) {
  ModelFolderOptions options;
  options.dtype = source.config.dtype;
  if (!arguments.dtype.empty()) {
    PACE_ASSIGN_OR_RETURN(const Dtype dtype, ParseModelDtype(arguments.dtype));
    options.dtype = dtype;
  }
  PACE_ASSIGN_OR_RETURN(const int64_t shard,
                        ParseByteSize("--max-shard-size", arguments.max_shard_size));
  options.max_shard_bytes = shard;
  options.progress = [&](int64_t done, int64_t total) { progress.Update(0, done, total); };
  return WriteModelFolder(arguments.to, source, options);
}

Result<uint32_t> GgufTypeOf(const ExportArguments& arguments, Dtype stored) {
  if (arguments.dtype == "q8_0") return kGgmlQ8_0;
  const Result<Dtype> dtype =
      arguments.dtype.empty() ? Result<Dtype>(stored) : ParseModelDtype(arguments.dtype);
  if (!dtype.ok()) {
    return InvalidArgument("--dtype ", arguments.dtype, ": must be f32, f16, bf16 or q8_0");
  }
  if (*dtype == Dtype::kF16) return kGgmlF16;
  return *dtype == Dtype::kBF16 ? kGgmlBF16 : kGgmlF32;
}

// A file that is there is not overwritten by mistake.
Status CheckNewFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return InvalidArgument(path, ": is there already");
  return Status::Ok();
}

Status Export(const ExportArguments& arguments) {
  if (arguments.format != "hf") PACE_RETURN_IF_ERROR(CheckNewFile(arguments.to));
  PACE_ASSIGN_OR_RETURN(const ModelSource source, OpenModelFolder(arguments.model));
  Progress progress(arguments.to, "tensors", 1);
  if (arguments.format == "hf") return ExportFolder(arguments, source, progress);
  if (arguments.format == "llama2c") {
    if (!arguments.dtype.empty() && arguments.dtype != "f32") {
      return InvalidArgument("--dtype ", arguments.dtype, ": llama2.c has f32 alone");
    }
    return ExportLlama2c(arguments.to, source);
  }
  PACE_ASSIGN_OR_RETURN(const uint32_t type, GgufTypeOf(arguments, source.config.dtype));
  GgufExportOptions options;
  options.type = type;
  options.tokenizer = !arguments.no_tokenizer;
  const std::filesystem::path folder =
      std::filesystem::absolute(arguments.model).lexically_normal();
  options.name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  options.progress = [&](int64_t done, int64_t total) { progress.Update(0, done, total); };
  return ExportGguf(arguments.to, source, options);
}

}  // namespace

void AddExport(const CommandLine& line) {
  line.Add<ExportArguments>(
      "export", "Write a model folder in another format or dtype",
      "pace export --model models/smollm2 --to smollm2.gguf --format gguf --dtype q8_0\n"
      "  pace export --model models/smollm2 --to models/smollm2-bf16 --dtype bf16",
      [](CLI::App& app, ExportArguments& arguments) {
        app.add_option("--model", arguments.model, "Folder that holds config.json and the weights")
            ->required();
        app.add_option("--to", arguments.to, "The folder (hf) or file to write")->required();
        app.add_option("--format", arguments.format, "hf, gguf or llama2c")
            ->check(CLI::IsMember({"hf", "gguf", "llama2c"}))
            ->capture_default_str();
        app.add_option("--dtype", arguments.dtype,
                       "f32, bf16, f16; gguf also q8_0 (default: as stored)");
        app.add_option("--max-shard-size", arguments.max_shard_size, "hf: bytes of one file")
            ->capture_default_str();
        app.add_flag("--no-tokenizer", arguments.no_tokenizer, "gguf: the model alone");
      },
      Export);
}

}  // namespace pace
