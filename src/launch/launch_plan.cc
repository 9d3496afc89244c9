#include "launch/launch_plan.h"

#include <algorithm>
#include <cstdio>

#include "core/printable.h"

namespace pace {
namespace {

constexpr int64_t kCheckpointEvery = 25;
// Time of a server to load a large model from a shared disk.
constexpr double kJoinSeconds = 1800;
constexpr size_t kMostNameBytes = 40;
constexpr double kMebibyte = 1024.0 * 1024;

bool IsName(std::string_view name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_fit = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name.size() <= kMostNameBytes && is_letter(name.front()) &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), is_fit);
}

bool IsOneLine(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

Status CheckTexts(const LaunchOptions& launch) {
  if (!IsName(launch.name)) {
    return InvalidArgument("launch.name = ", Printable(launch.name),
                           ": must be lower-case letters, digits and -, begin with a letter and "
                           "have at most ",
                           kMostNameBytes, " characters");
  }
  const std::pair<const char*, const std::string*> texts[] = {
      {"launch.pace", &launch.pace},    {"launch.python", &launch.python},
      {"launch.time", &launch.time},    {"launch.folder", &launch.folder},
      {"launch.image", &launch.image},  {"launch.engine_image", &launch.engine_image},
      {"launch.volume", &launch.volume}};
  for (const auto& [key, text] : texts) {
    if (!IsOneLine(*text)) {
      return InvalidArgument(key, " = ", Printable(*text), ": must be one line");
    }
  }
  for (const std::string& option : launch.sbatch) {
    if (!option.starts_with("--") || !IsOneLine(option) || option.find(' ') != std::string::npos) {
      return InvalidArgument("launch.sbatch = ", Printable(option),
                             ": must be options of sbatch, as in --partition=gpu");
    }
  }
  return Status::Ok();
}

Status CheckLauncher(const Settings& settings, Launcher launcher, const Placement& placement) {
  const LaunchOptions& launch = settings.launch;
  const bool sends = settings.engine.transfer == WeightTransfer::kNccl;
  if (sends &&
      (launch.engine == EngineProgram::kPace || settings.policy.device != PolicyDevice::kCuda)) {
    return InvalidArgument(
        "engine.transfer = nccl: needs launch.engine=vllm or sglang, and device=cuda");
  }
  if (launcher == Launcher::kLocal && placement.num_nodes > 1) {
    return InvalidArgument("cluster: ", settings.cluster.AllGpus(), " GPUs on machines of ",
                           settings.cluster.gpus_per_node, " are ", placement.num_nodes,
                           " machines; local has one (pace launch slurm, or set "
                           "cluster.gpus_per_node)");
  }
  if (launcher != Launcher::kKubernetes) return Status::Ok();
  if (launch.image.empty() || launch.volume.empty()) {
    return InvalidArgument(launch.image.empty() ? "launch.image" : "launch.volume",
                           " = \"\": must be set for kubernetes (an image with pace, and a "
                           "PersistentVolumeClaim that all pods can write)");
  }
  const int64_t ranks = settings.cluster.trainer_gpus;
  if (placement.NumTrainerNodes() > 1 && ranks % settings.cluster.gpus_per_node != 0) {
    return InvalidArgument(
        "cluster.trainer_gpus = ", ranks,
        ": must be a multiple of cluster.gpus_per_node = ", settings.cluster.gpus_per_node,
        " where it is larger (pods of a Job are equal)");
  }
  return Status::Ok();
}

// Memory for the KV cache of `pace serve` on a GPU.
int64_t CacheMebibytes(const Settings& settings) {
  const double share = settings.cluster.memory_share * settings.gpu.memory_gib * 1024 * kMebibyte;
  const auto used = static_cast<double>(TotalBytes(EngineMemory(settings, 0)));
  return static_cast<int64_t>((share - used) / kMebibyte);
}

Status CheckPorts(const LaunchPlan& plan) {
  for (size_t i = 0; i < plan.placement.engines.size(); ++i) {
    const int64_t port = plan.PortOf(i);
    const bool taken = plan.NumRanks() > 1 && port == plan.settings.launch.master_port;
    if (port <= 65535 && !taken) continue;
    return InvalidArgument("launch.port = ", plan.settings.launch.port, ": engine ", i,
                           " would have port ", port,
                           taken ? ", which is launch.master_port" : ", which is none");
  }
  return Status::Ok();
}

std::string RunFolder(const LaunchPlan& plan) {
  return Concat(plan.folder,
                plan.launcher == Launcher::kKubernetes ? "/" + plan.settings.launch.name : "");
}

// What a run on the layout has instead of what the settings say.
void SetRun(LaunchPlan& plan) {
  Settings& run = plan.settings;
  if (run.run.checkpoint_every == 0) {
    run.run.checkpoint_every = kCheckpointEvery;
    plan.notes.push_back(Concat("run.checkpoint_every = ", kCheckpointEvery,
                                ": a job that is started again goes on from a checkpoint"));
  }
  EngineSettings& engine = run.engine;
  engine.server =
      run.launch.engine == EngineProgram::kSglang ? ServerKind::kSglang : ServerKind::kVllm;
  engine.fleet = 0;
  engine.urls.clear();
  engine.requests = run.cluster.slots;
  engine.slots = run.cluster.slots;
  engine.weights = RunFolder(plan) + "/weights";
  if (plan.launcher != Launcher::kKubernetes) engine.token_file = plan.folder + "/token";
  if (plan.OnGpus()) {
    engine.join_s = std::max(engine.join_s, kJoinSeconds);
    engine.kv_mib = std::max<int64_t>(1, CacheMebibytes(run));
  } else if (run.launch.cpus > 0) {
    engine.threads = run.launch.cpus;
  }
  for (size_t i = 0; i < plan.placement.engines.size(); ++i) {
    if (plan.launcher == Launcher::kLocal) {
      engine.urls.push_back(Concat("http://127.0.0.1:", plan.PortOf(i)));
    } else if (plan.launcher == Launcher::kKubernetes) {
      engine.urls.push_back(Concat("http://", run.launch.name, "-engine-", i, ".", run.launch.name,
                                   "-engine:", plan.PortOf(i)));
    }
  }
}

std::string OneDecimal(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

std::string MemoryLine(std::string_view who, const std::vector<MemoryPart>& parts,
                       double gibibytes) {
  constexpr double kGibibyte = 1024 * kMebibyte;
  std::string line = Concat("memory      ", who, ": ",
                            OneDecimal(static_cast<double>(TotalBytes(parts)) / kGibibyte), " of ",
                            OneDecimal(gibibytes), " GiB (");
  for (size_t i = 0; i < parts.size(); ++i) {
    line += Concat(i == 0 ? "" : ", ", parts[i].name, " ",
                   OneDecimal(static_cast<double>(parts[i].num_bytes) / kGibibyte));
  }
  return line + ")";
}

void AddTexts(std::vector<Word>& words, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) words.push_back({text});
}

EngineCommand VllmCommand(const LaunchPlan& plan, const std::string& host, int64_t port) {
  const Settings& run = plan.settings;
  EngineCommand command;
  command.environment = {"VLLM_SERVER_DEV_MODE=1"};
  command.token_variable = "VLLM_API_KEY";
  AddTexts(command.words, {run.launch.python, "-m", "vllm.entrypoints.openai.api_server", "--model",
                           run.policy.model, "--host", host, "--port", Concat(port),
                           "--enable-scale-out", "--generation-config", "vllm", "--dtype",
                           run.policy.compute == ComputeType::kBfloat16 ? "bfloat16" : "float32",
                           "--max-num-seqs", Concat(run.cluster.slots), "--max-model-len",
                           Concat(run.prompt.max_tokens + run.generation.max_tokens)});
  if (run.engine.transfer == WeightTransfer::kNccl) {
    AddTexts(command.words, {"--weight-transfer-config", R"({"backend":"nccl"})"});
  }
  if (plan.OnGpus()) {
    AddTexts(command.words, {"--tensor-parallel-size", Concat(run.cluster.tensor_parallel),
                             "--gpu-memory-utilization", Concat(run.cluster.memory_share)});
  } else {
    command.words.push_back({"--enforce-eager"});
  }
  return command;
}

EngineCommand SglangCommand(const LaunchPlan& plan, const std::string& host, int64_t port,
                            const std::string& token_expression) {
  const Settings& run = plan.settings;
  EngineCommand command;
  AddTexts(command.words, {run.launch.python,
                           "-m",
                           "sglang.launch_server",
                           "--model-path",
                           run.policy.model,
                           "--host",
                           host,
                           "--port",
                           Concat(port),
                           "--dtype",
                           run.policy.compute == ComputeType::kBfloat16 ? "bfloat16" : "float32",
                           "--tp-size",
                           Concat(run.cluster.tensor_parallel),
                           "--mem-fraction-static",
                           Concat(run.cluster.memory_share),
                           "--max-running-requests",
                           Concat(run.cluster.slots),
                           "--context-length",
                           Concat(run.prompt.max_tokens + run.generation.max_tokens),
                           "--api-key"});
  command.token_variable = "PACE_API_KEY";
  command.words.push_back({token_expression, true});
  return command;
}

EngineCommand PaceCommand(const LaunchPlan& plan, const std::string& host, int64_t port) {
  const Settings& run = plan.settings;
  EngineCommand command;
  command.token_variable = "PACE_API_KEY";
  AddTexts(
      command.words,
      {run.launch.pace, "serve", run.policy.model, "--host", host, "--port", Concat(port),
       Concat("policy.device=", plan.OnGpus() ? "cuda" : "cpu"),
       Concat("policy.compute=", run.policy.compute == ComputeType::kBfloat16 ? "bf16" : "float32"),
       Concat("engine.slots=", run.engine.slots), Concat("engine.kv_mib=", run.engine.kv_mib),
       Concat("engine.threads=", run.engine.threads),
       Concat("engine.pass_tokens=", run.engine.pass_tokens)});
  return command;
}

}  // namespace

int64_t LaunchPlan::RanksPerNode() const {
  return std::min(NumRanks(), settings.cluster.gpus_per_node);
}

int64_t LaunchPlan::PortOf(size_t engine) const {
  const int64_t first = settings.launch.port;
  return launcher == Launcher::kKubernetes ? first
                                           : first + placement.engines[engine].index_on_node;
}

Result<LaunchPlan> PlanLaunch(const Settings& settings, Launcher launcher,
                              const std::string& folder) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  PACE_RETURN_IF_ERROR(CheckTexts(settings.launch));
  if (!IsOneLine(folder) || !folder.starts_with('/')) {
    return InvalidArgument("folder ", Printable(folder), ": must be an absolute path");
  }
  if (settings.launch.engine == EngineProgram::kPace && settings.cluster.tensor_parallel > 1) {
    return InvalidArgument("cluster.tensor_parallel = ", settings.cluster.tensor_parallel,
                           ": must be 1 with launch.engine = pace (vllm and sglang use several "
                           "GPUs for one engine)");
  }
  LaunchPlan plan;
  plan.launcher = launcher;
  plan.settings = settings;
  plan.folder = folder;
  PACE_ASSIGN_OR_RETURN(plan.placement, PlaceOnNodes(settings.cluster));
  PACE_RETURN_IF_ERROR(CheckLauncher(settings, launcher, plan.placement));
  PACE_RETURN_IF_ERROR(CheckLayoutMemory(settings));
  PACE_ASSIGN_OR_RETURN(plan.shard, ChooseSharding(settings));
  PACE_RETURN_IF_ERROR(CheckPorts(plan));
  SetRun(plan);
  return plan;
}

std::string ShellQuoted(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=,@%+").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string ShellLine(const std::vector<Word>& words) {
  std::string line;
  for (const Word& word : words) {
    line +=
        Concat(line.empty() ? "" : " ", word.is_expression ? word.text : ShellQuoted(word.text));
  }
  return line;
}

EngineCommand EngineCommandOf(const LaunchPlan& plan, const std::string& host, int64_t port,
                              const std::string& token_expression) {
  EngineCommand command;
  switch (plan.settings.launch.engine) {
    case EngineProgram::kVllm:
      command = VllmCommand(plan, host, port);
      break;
    case EngineProgram::kSglang:
      command = SglangCommand(plan, host, port, token_expression);
      break;
    case EngineProgram::kPace:
      command = PaceCommand(plan, host, port);
      break;
  }
  AddTexts(command.words, plan.settings.launch.engine_options);
  return command;
}

std::vector<Word> TrainWords(const LaunchPlan& plan, const std::string& settings_file,
                             const std::string& run, bool resumes, const std::string& urls) {
  std::vector<Word> words = {{plan.settings.launch.pace}, {"train"}};
  if (resumes) {
    AddTexts(words, {"--resume", run});
  } else {
    AddTexts(words, {settings_file, "--out", run});
    if (const auto shard = ShardingAssignment(plan.settings, plan.shard)) words.push_back({*shard});
  }
  if (!urls.empty()) words.push_back({urls, true});
  return words;
}

std::vector<std::string> DescribePlan(const LaunchPlan& plan) {
  const Settings& run = plan.settings;
  const size_t engines = plan.placement.engines.size();
  const char* const program = run.launch.engine == EngineProgram::kVllm     ? "vLLM"
                              : run.launch.engine == EngineProgram::kSglang ? "SGLang"
                                                                            : "pace serve";
  const char* const unit = plan.OnGpus() ? "GPU" : "process";
  std::vector<std::string> lines = {
      Concat("machines    ", plan.placement.num_nodes, plan.OnGpus() ? ", GPUs in use:" : ""),
      Concat("engines     ", engines, " of ", run.cluster.tensor_parallel, " ", unit,
             " each: ", program, ", ", run.cluster.slots, " responses at a time"),
      Concat("trainer     ", plan.NumRanks(), plan.NumRanks() == 1 ? " rank" : " ranks")};
  if (plan.OnGpus()) {
    for (int64_t node = 0; node < plan.placement.num_nodes; ++node) {
      lines[0] += Concat(" ", plan.placement.NumGpus(node));
    }
    const std::optional<std::string> shard = ShardingAssignment(run, plan.shard);
    if (shard.has_value()) lines[2] += Concat(", ", *shard);
    std::vector<MemoryPart> rank = RankMemory(NetworkOf(run.model), RankMemoryOf(run, plan.shard));
    rank.push_back(CudaContext());
    lines.push_back(MemoryLine("a trainer rank", rank, run.gpu.memory_gib));
    std::vector<MemoryPart> engine = EngineMemory(run, 0);
    std::erase_if(engine, [](const MemoryPart& part) { return part.num_bytes == 0; });
    engine.push_back(
        {"KV cache", static_cast<int64_t>(static_cast<double>(CacheMebibytes(run)) * kMebibyte)});
    lines.push_back(MemoryLine("a GPU of an engine", engine, run.gpu.memory_gib));
  }
  for (const std::string& note : plan.notes) lines.push_back("note        " + note);
  return lines;
}

}  // namespace pace
