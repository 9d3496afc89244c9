// Reference checkpoints: DIR is a Hugging Face folder with random weights, and
// DIR/expected.json what transformers computes from it. Several DIRs may be given.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "conformance/models_kind_checks.h"
#include "core/concat.h"
#include "model/model_config_json.h"

namespace pace::models {
namespace {

// Of the file as a whole, and not compared.
constexpr std::string_view kWords[] = {"about", "versions",     "attention",
                                       "noise", "seed",         "compute_dtype",
                                       "cases", "padded_batch", "bf16_compute"};

std::string TorchName(Dtype dtype) {
  if (dtype == Dtype::kF32) return "float32";
  if (dtype == Dtype::kF16) return "float16";
  return dtype == Dtype::kBF16 ? "bfloat16" : std::string(DtypeName(dtype));
}

// What concerns the folder and not a case.
class FolderChecks {
 public:
  FolderChecks(const ModelFolder& folder, FieldCounts& counts) : folder_(folder), counts_(counts) {}

  void Run() {
    for (const auto& [name, value] : folder_.expected.items()) {
      if (std::ranges::find(kWords, name) != std::end(kWords)) continue;
      Field field = counts_.Begin("checkpoint", name);
      if (name == "model_type") {
        Text(field, std::string(ArchitectureName(folder_.config.architecture)), value);
      } else if (name == "stored_dtype") {
        Text(field, TorchName(folder_.weights.Get("model.embed_tokens.weight").dtype), value);
      } else if (name == "tie_word_embeddings") {
        field.Same("value", folder_.config.tied ? 1 : 0, value.get<bool>() ? 1 : 0);
      } else if (name == "parameters") {
        Parameters(field, value);
      } else if (name == "weight_checks") {
        Weights(field, value);
      } else if (name == "rope") {
        Rope(value);
        continue;
      } else {
        counts_.Skip("checkpoint", name, "is not a field that is known");
        continue;
      }
      counts_.Count(field);
    }
  }

 private:
  static void Text(Field& field, const std::string& ours, const Json& expected) {
    if (expected != ours) field.Differs(Concat("ours ", ours, ", expected ", expected.dump()));
  }

  void Parameters(Field& field, const Json& expected) const {
    const std::vector<Parameter> ours = ParametersOf(folder_.config);
    if (ours.size() != expected.size()) {
      field.Differs(Concat("ours are ", ours.size(), ", expected ", expected.size()));
    }
    for (const Parameter& parameter : ours) {
      const auto found = expected.find(parameter.name);
      if (found == expected.end()) {
        field.Differs(Concat(parameter.name, ": is not expected"));
      } else if (found->get<std::vector<int64_t>>() != parameter.shape) {
        field.Differs(Concat(parameter.name, ": ours ", ShapeText(parameter.shape), ", expected ",
                             found->dump()));
      }
    }
  }

  void Weights(Field& field, const Json& expected) const {
    for (const auto& [name, sums] : expected.items()) {
      if (!folder_.weights.views().contains(name)) {
        field.Differs(Concat(name, ": is not a parameter of ours"));
        continue;
      }
      const std::vector<float> values = folder_.weights.Floats(name);
      double sum = 0;
      double abs_sum = 0;
      for (const float value : values) {
        sum += value;
        abs_sum += std::abs(value);
      }
      const Tolerance rounding = {.absolute = 1e-9 * (1 + abs_sum)};
      const Tolerance printed = {.relative = 1e-7};
      field.Near(name + ": sum", sum, sums.at("sum"), rounding);
      field.Near(name + ": abs_sum", abs_sum, sums.at("abs_sum"), rounding);
      field.Near(name + ": first", values.front(), sums.at("first"), printed);
      field.Near(name + ": last", values.back(), sums.at("last"), printed);
    }
  }

  void Rope(const Json& expected) {
    for (const auto& [name, value] : expected.items()) {
      Field field = counts_.Begin("checkpoint", "rope." + name);
      if (name == "inv_freq") {
        const std::vector<float> ours = RopeFrequencies(folder_.config);
        field.Near({ours.begin(), ours.end()}, value.get<std::vector<double>>(),
                   {.relative = 1e-6});
      } else if (name == "attention_scaling") {
        // No rope type that is supported scales the attention.
        field.Near("value", 1, value, {});
      } else {
        counts_.Skip("checkpoint", field.name(), "is not a field that is known");
        continue;
      }
      counts_.Count(field);
    }
  }

  const ModelFolder& folder_;
  FieldCounts& counts_;
};

Result<ModelFolder> Open(const std::string& path, const std::string& config_name) {
  PACE_ASSIGN_OR_RETURN(ModelConfig config,
                        ReadModelConfig(path, config_name.empty() ? "config.json" : config_name));
  PACE_ASSIGN_OR_RETURN(WeightSet weights, WeightSet::Load(config, path));
  const std::string file = (std::filesystem::path(path) / "expected.json").string();
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return NotFound(file, ": cannot be read");
  return ModelFolder{.path = path,
                     .config = std::move(config),
                     .weights = std::move(weights),
                     .expected = Json::parse(stream)};
}

Status CheckFolder(const std::string& path, const KindArguments& arguments, Tally& tally) {
  PACE_ASSIGN_OR_RETURN(const DeviceKind device,
                        ParseDevice(arguments.device.empty() ? "cpu" : arguments.device));
  PACE_ASSIGN_OR_RETURN(const ModelFolder folder, Open(path, arguments.config));
  const std::string computed = folder.expected.value("compute_dtype", "float32");
  if (computed != "float32") {
    return InvalidArgument(path, ": compute_dtype = ", computed, ": must be float32");
  }
  FieldCounts counts(folder, tally);
  FolderChecks(folder, counts).Run();
  if (device == DeviceKind::kCpu) PACE_RETURN_IF_ERROR(CheckTrainingNetwork(folder, counts));
  PACE_RETURN_IF_ERROR(CheckDecoder(folder, device, counts));
  tally.notes.push_back(counts.Summary());
  return Status::Ok();
}

}  // namespace
}  // namespace pace::models

namespace pace {

Status CheckModels(const KindArguments& arguments, Tally& tally) {
  for (const std::string& path : arguments.paths) {
    try {
      PACE_RETURN_IF_ERROR(models::CheckFolder(path, arguments, tally));
    } catch (const nlohmann::json::exception& error) {
      return InvalidArgument(path, ": expected.json is not of this kind: ", error.what());
    }
  }
  return Status::Ok();
}

}  // namespace pace
