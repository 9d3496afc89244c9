// Scripts for Slurm and for one machine. They share how engines are kept running and how the
// trainer goes on after a failure.
#include <algorithm>

#include "launch/launch_files.h"

namespace pace {
namespace {

constexpr char kEngineLoop[] = R"sh(
# Keeps one engine running until this script ends: $1 is its number, the rest its command. What it
# prints goes to logs/engine-N.log.
keep_engine() {
  local engine=$1 child=
  shift
  trap 'kill "$child" 2>/dev/null; wait "$child"; exit' TERM
  while true; do
    "$@" >>"$folder/logs/engine-$engine.log" 2>&1 &
    child=$!
    wait "$child"
    echo "engine $engine ended with status $?; it is started again" >&2
    sleep 5 &
    child=$!
    wait "$child"
  done
}
)sh";

constexpr char kTrainLoop[] = R"sh(
# A signal goes to the trainer, which saves and ends with status 3.
trainer=
trap 'kill -TERM "$trainer" 2>/dev/null' TERM INT

# Trains; after a failure it goes on from the newest checkpoint.
status=0
for ((attempt = 0; attempt <= max_restarts; ++attempt)); do
  if [ -e "$folder/run/manifest.json" ]; then
    resume &
  else
    train &
  fi
  trainer=$!
  wait "$trainer"
  status=$?
  while kill -0 "$trainer" 2>/dev/null; do
    wait "$trainer"
    status=$?
  done
  if [ "$status" -eq 0 ] || [ "$status" -eq 3 ]; then break; fi
  echo "the trainer ended with status $status (attempt $attempt of $max_restarts)" >&2
done
kill "${engines[@]}" 2>/dev/null
wait
exit "$status"
)sh";

std::string ScriptHead(const LaunchPlan& plan) {
  return Concat("folder=", ShellQuoted(plan.folder), "\n",
                "max_restarts=", plan.settings.launch.max_restarts, "\n",
                "mkdir -p \"$folder/logs\"\nengines=()\n");
}

// NAME=value before a command, the token read from its file so that no process list shows it.
std::string Exports(const EngineCommand& command) {
  std::string text;
  for (const std::string& variable : command.environment) {
    text += Concat("export ", variable, "\n");
  }
  if (!command.token_variable.empty()) {
    text += Concat("export ", command.token_variable, "=\"$(cat \"$folder/token\")\"\n");
  }
  return text;
}

std::string Function(std::string_view name, const std::vector<Word>& words) {
  return Concat("\n", name, "() {\n  exec ", ShellLine(words), "\n}\n");
}

std::vector<Word> Joined(std::vector<Word> words, const std::vector<Word>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

constexpr char kTokenExpression[] = "\"$PACE_API_KEY\"";

// Resources of every step: its tasks share the memory of the job.
std::vector<Word> StepWords(const LaunchPlan& plan, const std::string& name, int64_t num_gpus) {
  std::vector<Word> words = {{"srun"}, {"--exact"}, {"--mem=0"}, {Concat("--job-name=", name)}};
  words.push_back({Concat("--cpus-per-task=", std::max<int64_t>(1, plan.settings.launch.cpus))});
  if (plan.OnGpus()) words.push_back({Concat("--gpus-per-task=", num_gpus)});
  return words;
}

std::string SlurmHead(const LaunchPlan& plan) {
  const LaunchOptions& launch = plan.settings.launch;
  int64_t gpus = 0, tasks = 0;
  for (int64_t node = 0; node < plan.placement.num_nodes; ++node) {
    gpus = std::max(gpus, plan.placement.NumGpus(node));
    const auto here = [node](const auto& placed) { return placed.node == node; };
    tasks = std::max<int64_t>(tasks, std::ranges::count_if(plan.placement.ranks, here) +
                                         std::ranges::count_if(plan.placement.engines, here));
  }
  std::string text =
      Concat("#!/bin/bash\n#SBATCH --job-name=", launch.name,
             "\n#SBATCH --nodes=", plan.placement.num_nodes, "\n#SBATCH --ntasks-per-node=", tasks,
             "\n#SBATCH --cpus-per-task=", std::max<int64_t>(1, launch.cpus), "\n");
  if (plan.OnGpus()) text += Concat("#SBATCH --gpus-per-node=", gpus, "\n");
  if (!launch.time.empty()) text += Concat("#SBATCH --time=", launch.time, "\n");
  text += Concat("#SBATCH --output=", plan.folder, "/job-%j.log\n#SBATCH --open-mode=append\n");
  for (const std::string& option : launch.sbatch) text += Concat("#SBATCH ", option, "\n");
  return text;
}

std::string SlurmEngines(const LaunchPlan& plan) {
  std::string text;
  std::string urls;
  for (size_t i = 0; i < plan.placement.engines.size(); ++i) {
    const PlacedEngine& engine = plan.placement.engines[i];
    const std::string node = Concat("${nodes[", engine.node, "]}");
    const EngineCommand command =
        EngineCommandOf(plan, "0.0.0.0", plan.PortOf(i), kTokenExpression);
    if (i == 0) text += Concat("\n", Exports(command));
    std::vector<Word> words = {{"keep_engine"}, {Concat(i)}};
    words =
        Joined(words, StepWords(plan, Concat("engine-", i), plan.settings.cluster.tensor_parallel));
    words =
        Joined(words, {{"--nodes=1"}, {"--ntasks=1"}, {Concat("--nodelist=\"", node, "\""), true}});
    text += ShellLine(Joined(words, command.words)) + " &\nengines+=($!)\n";
    urls += Concat(i == 0 ? "" : ",", "http://", node, ":", plan.PortOf(i));
  }
  return Concat(text, "urls=\"[", urls, "]\"\n");
}

}  // namespace

std::string SlurmScript(const LaunchPlan& plan) {
  const int64_t trainer_nodes = plan.placement.NumTrainerNodes();
  std::vector<Word> step = Joined(
      StepWords(plan, "trainer", 1),
      {{Concat("--nodes=", trainer_nodes)},
       {Concat("--ntasks=", plan.NumRanks())},
       {Concat("--ntasks-per-node=", plan.RanksPerNode())},
       {"--distribution=block"},
       {"--kill-on-bad-exit=1"},
       {Concat("--nodelist=\"$(IFS=,; echo \"${nodes[*]:0:", trainer_nodes, "}\")\""), true}});
  const std::string settings = plan.folder + "/run.yaml", run = plan.folder + "/run";
  const std::string urls = "\"engine.urls=$urls\"";
  return Concat(SlurmHead(plan), "\n# Written by pace launch; docs/launch.md describes it.\n",
                ScriptHead(plan),
                "mapfile -t nodes < <(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
                "export MASTER_ADDR=\"${nodes[0]}\" MASTER_PORT=",
                plan.settings.launch.master_port, "\n", kEngineLoop, SlurmEngines(plan),
                Function("train", Joined(step, TrainWords(plan, settings, run, false, urls))),
                Function("resume", Joined(step, TrainWords(plan, settings, run, true, urls))),
                kTrainLoop);
}

std::string LocalScript(const LaunchPlan& plan) {
  std::string engines;
  for (size_t i = 0; i < plan.placement.engines.size(); ++i) {
    const EngineCommand command =
        EngineCommandOf(plan, "127.0.0.1", plan.PortOf(i), kTokenExpression);
    if (i == 0) engines += Concat("\n", Exports(command));
    std::vector<Word> words = {{"keep_engine"}, {Concat(i)}};
    if (plan.OnGpus()) {
      std::string gpus;
      for (const int64_t gpu : plan.placement.engines[i].gpus_on_node) {
        gpus += Concat(gpus.empty() ? "" : ",", gpu);
      }
      words = Joined(words, {{"env"}, {Concat("CUDA_VISIBLE_DEVICES=", gpus)}});
    }
    engines += ShellLine(Joined(words, command.words)) + " &\nengines+=($!)\n";
  }
  std::vector<Word> before;
  if (plan.OnGpus()) {
    std::string gpus;
    for (const PlacedRank& rank : plan.placement.ranks) {
      gpus += Concat(gpus.empty() ? "" : ",", rank.gpu);
    }
    before = {{"env"}, {Concat("CUDA_VISIBLE_DEVICES=", gpus)}};
  }
  if (plan.NumRanks() > 1) {
    before = Joined(before, {{"torchrun"},
                             {"--no-python"},
                             {"--nnodes=1"},
                             {Concat("--nproc-per-node=", plan.NumRanks())},
                             {Concat("--master-port=", plan.settings.launch.master_port)}});
  }
  const std::string settings = plan.folder + "/run.yaml", run = plan.folder + "/run";
  return Concat("#!/bin/bash\n# Written by pace launch; docs/launch.md describes it.\n",
                ScriptHead(plan), kEngineLoop, engines,
                Function("train", Joined(before, TrainWords(plan, settings, run, false, ""))),
                Function("resume", Joined(before, TrainWords(plan, settings, run, true, ""))),
                kTrainLoop);
}

}  // namespace pace
