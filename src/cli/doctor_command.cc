// pace doctor
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/command.h"
#include "cluster/model_shape.h"
#include "config/settings.h"
#include "core/file.h"
#include "core/json_writer.h"
#include "launch/fleet_check.h"
#include "launch/fleet_probe.h"
#include "model/cpu/kernels/isa.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/model_config_json.h"
#include "record/build_info.h"
#include "sandbox/isolation_probe.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

struct DoctorArguments {
  std::vector<std::string> fleet;  // URLs of servers, and settings that name some
  std::string token_file;
  double timeout_s = 10;
  bool json = false;
};

constexpr size_t kMaxTokenBytes = 4096;
constexpr int64_t kKeptVersions = 3;  // of weights in the folder

// One thing that was looked at: what it is, and what is missing for it if anything.
struct Finding {
  std::string part;   // "gpu"
  std::string what;   // "NVIDIA H200, 139 GiB, ..."
  std::string lacks;  // empty = nothing
};

std::string Gibibytes(int64_t num_bytes) {
  return Concat(num_bytes >> 30, " GiB");
}

Finding FindBuild() {
  return {.part = "build",
          .what = Concat("pace ", PaceVersion(), " (", PaceCommit(), "), ",
                         *PACE_TORCH == '\0' ? "without LibTorch" : "LibTorch " PACE_TORCH, ", ",
                         HasCuda() ? "with CUDA" : "without CUDA"),
          .lacks = *PACE_TORCH == '\0'
                       ? "train, sft, eval and compare need LibTorch (build without PACE_CORE_ONLY)"
                       : ""};
}

// What a processor of this architecture could have beyond the portable level.
std::string MissingIsa() {
#if defined(__x86_64__)
  return "AVX2 or AVX-512, without which decoding is slow";
#else
  return "kernels for this architecture, without which decoding is slow";
#endif
}

Finding FindCpu() {
  return {.part = "cpu",
          .what = Concat(CpuModel(), ", ", std::thread::hardware_concurrency(),
                         " threads, kernels for ", IsaName(BestIsa())),
          .lacks = BestIsa() == Isa::kPortable ? MissingIsa() : ""};
}

Finding FindGpu() {
  const Result<CudaDevice> device = FindCudaDevice();
  if (!device.ok()) return {.part = "gpu", .what = "none", .lacks = device.status().message()};
  return {.part = "gpu",
          .what = Concat(device->name, ", compute capability ", device->capability / 10, ".",
                         device->capability % 10, ", ", Gibibytes(device->free_bytes), " of ",
                         Gibibytes(device->memory_bytes), " free, driver for CUDA ", device->driver,
                         ", runtime ", device->runtime, ", cuBLAS ", device->cublas),
          .lacks = device->capability < 90 ? "a GPU of compute capability 9.0 or later" : ""};
}

Finding FindDeterminism() {
  return {.part = "determinism",
          .what = HasCuda() ? "cpu: a response's bits depend on its own context alone; "
                              "cuda: on the rows beside it too"
                            : "a response's bits depend on its own context alone",
          .lacks = ""};
}

Finding FindSandbox() {
  std::string there;
  std::string lacks;
  for (const IsolationPiece& piece : ProbeIsolation()) {
    std::string& list = piece.error == 0 ? there : lacks;
    if (!list.empty()) list += ", ";
    list += piece.name;
    if (piece.error != 0) list += Concat(" (", std::strerror(piece.error), ")");
  }
  return {.part = "sandbox", .what = there.empty() ? "nothing" : there, .lacks = lacks};
}

Finding FindTraining() {
  const bool has_torch = *PACE_TORCH != '\0';
  if (!has_torch) return {.part = "training", .what = "no", .lacks = "LibTorch"};
  const bool has_gpu = HasCuda() && FindCudaDevice().ok();
  return {.part = "training",
          .what = has_gpu ? "cpu and cuda: float32 and bf16; packed FlashAttention in bf16 on cuda"
                          : "cpu: float32 and bf16",
          .lacks = HasCuda() ? (has_gpu ? "" : "a GPU") : "a build with CUDA, for a GPU"};
}

std::string Json(const std::vector<Finding>& findings) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  for (const Finding& finding : findings) {
    json.Key(finding.part);
    json.BeginObject();
    json.Put("what", finding.what);
    json.Put("lacks", finding.lacks);
    json.EndObject();
  }
  json.EndObject();
  return out;
}

// The fleet of a settings file, and the run that it belongs to.
struct FleetPlan {
  std::vector<std::string> urls = {};
  std::optional<Settings> settings = {};
};

Result<FleetPlan> PlanFleet(const std::vector<std::string>& names) {
  FleetPlan plan;
  for (const std::string& name : names) {
    if (name.find("://") != std::string::npos) {
      plan.urls.push_back(name);
      continue;
    }
    if (plan.settings.has_value()) {
      return InvalidArgument("doctor ", name, ": must be a URL after one settings file");
    }
    PACE_ASSIGN_OR_RETURN(plan.settings, LoadSettings(name, {}));
    plan.urls.insert(plan.urls.end(), plan.settings->engine.urls.begin(),
                     plan.settings->engine.urls.end());
  }
  if (plan.urls.empty()) {
    return InvalidArgument("doctor ", names.front(),
                           ": engine.urls names no server (add URLs: pace doctor ", names.front(),
                           " http://HOST:PORT)");
  }
  return plan;
}

Result<std::string> TokenOf(const DoctorArguments& arguments, const FleetPlan& plan) {
  std::string path = arguments.token_file;
  if (path.empty() && plan.settings.has_value()) path = plan.settings->engine.token_file;
  if (path.empty()) {
    const char* const token = std::getenv("PACE_ENGINE_TOKEN");
    return std::string(token == nullptr ? "" : token);
  }
  PACE_ASSIGN_OR_RETURN(std::string token, ReadFile(path, kMaxTokenBytes));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  return token;
}

// What the run expects of its servers, as far as this machine has its model.
Status AddRun(const Settings& settings, FleetFacts& facts) {
  const std::string& folder = settings.policy.model;
  facts.max_context = settings.prompt.max_tokens + settings.generation.max_tokens;
  if (Files::Default().Exists(folder + "/config.json")) {
    PACE_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(folder));
    facts.max_context = std::min(facts.max_context, config.max_positions);
    facts.shape = {.vocabulary = config.vocab_size,
                   .hidden_size = config.hidden_size,
                   .num_layers = config.num_layers};
    PACE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(folder));
    Result<std::vector<TokenId>> probe = tokenizer.Encode(kProbeText);
    if (probe.ok()) facts.probe = std::move(probe).value();
  } else {
    facts.shape = {.vocabulary = settings.model.vocab,
                   .hidden_size = settings.model.hidden,
                   .num_layers = settings.model.num_layers};
  }
  if (!settings.engine.weights.empty() && settings.engine.transfer == WeightTransfer::kFolder) {
    facts.weights = ProbeFolder(settings.engine.weights,
                                kKeptVersions * static_cast<int64_t>(WeightBytes(settings.model)));
  }
  facts.sends_weights = settings.engine.transfer == WeightTransfer::kNccl;
  facts.needs_nccl = facts.sends_weights || (settings.policy.device == PolicyDevice::kCuda &&
                                             settings.cluster.TrainingGpus() > 1);
  return Status::Ok();
}

std::string Json(const std::vector<FleetLine>& lines) {
  std::string out;
  for (const FleetLine& line : lines) {
    JsonWriter json(out);
    json.BeginObject();
    json.Put("part", line.part);
    json.Put("text", line.text);
    json.Put("failed", line.failed);
    json.EndObject();
    out += "\n";
  }
  return out;
}

Result<int> CheckFleetOf(const DoctorArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const FleetPlan plan, PlanFleet(arguments.fleet));
  PACE_ASSIGN_OR_RETURN(const std::string token, TokenOf(arguments, plan));
  FleetFacts facts;
  if (plan.settings.has_value()) PACE_RETURN_IF_ERROR(AddRun(*plan.settings, facts));
  const bool is_sglang =
      plan.settings.has_value() && plan.settings->engine.server == ServerKind::kSglang;
  for (const std::string& url : plan.urls) {
    facts.engines.push_back(
        ProbeEngine({.url = url,
                     .token = token,
                     .ca_file = plan.settings.has_value() ? plan.settings->engine.ca_file : ""},
                    is_sglang ? SglangDialect() : VllmDialect(), Seconds(arguments.timeout_s)));
  }
  facts.nccl = FindNccl();
  const std::vector<FleetLine> lines = CheckFleet(facts);
  if (arguments.json) std::fputs(Json(lines).c_str(), stdout);
  int code = 0;
  for (const FleetLine& line : lines) {
    if (line.failed) code = 1;
    if (arguments.json) continue;
    std::printf("%-6s %s %s\n", line.failed ? "failed" : "ok", line.part.c_str(),
                line.text.c_str());
  }
  return code;
}

Result<int> RunDoctor(const DoctorArguments& arguments) {
  if (!arguments.fleet.empty()) return CheckFleetOf(arguments);
  const std::vector<Finding> findings = {FindBuild(),       FindCpu(),      FindGpu(),
                                         FindDeterminism(), FindTraining(), FindSandbox()};
  if (arguments.json) {
    std::printf("%s\n", Json(findings).c_str());
    return 0;
  }
  for (const Finding& finding : findings) {
    std::printf("%-15s %s\n", finding.part.c_str(), finding.what.c_str());
    if (!finding.lacks.empty()) std::printf("%-15s   lacks: %s\n", "", finding.lacks.c_str());
  }
  return 0;
}

}  // namespace

void AddDoctor(const CommandLine& line) {
  line.Add<DoctorArguments>(
      "doctor", "What this machine has and lacks, or what is wrong with a fleet of engines",
      "pace doctor\n"
      "  pace doctor my-run.yaml\n"
      "  pace doctor http://node1:8000 http://node2:8000 --token-file token",
      [](CLI::App& app, DoctorArguments& arguments) {
        app.add_option("fleet", arguments.fleet,
                       "URLs of servers, or settings with engine.urls: check them instead of this "
                       "machine");
        app.add_option("--token-file", arguments.token_file,
                       "File with the token of the servers (default: engine.token_file, else the "
                       "environment variable PACE_ENGINE_TOKEN)");
        app.add_option("--timeout", arguments.timeout_s, "Seconds for each call to a server")
            ->check(CLI::Range(0.1, 600.0))
            ->capture_default_str();
        app.add_flag("--json", arguments.json, "One JSON object, or one per line of a fleet");
      },
      RunDoctor);
}

}  // namespace pace
