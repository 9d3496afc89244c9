// Objects of Kubernetes. A small writer of YAML: every text of the settings is quoted.
#include "core/json_writer.h"
#include "launch/launch_files.h"

namespace pace {
namespace {

// In double quotes, with the escapes of JSON, which are YAML's too.
std::string Quoted(std::string_view text) {
  std::string out;
  JsonWriter json(out);
  json.Value(text);
  return out;
}

std::string Lines(std::string_view indent, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.empty()) out += Concat(indent, line);
    out += "\n";
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

std::string Head(std::string_view version, std::string_view kind, const std::string& name,
                 const LaunchPlan& plan) {
  return Concat("---\napiVersion: ", version, "\nkind: ", kind, "\nmetadata:\n  name: ", name,
                "\n  labels:\n    app.kubernetes.io/name: ", plan.settings.launch.name, "\n");
}

// A headless service, so that every pod has a name.
std::string Service(const LaunchPlan& plan, const std::string& name, int64_t port) {
  return Concat(Head("v1", "Service", name, plan),
                "spec:\n  clusterIP: None\n  publishNotReadyAddresses: true\n  selector:\n    "
                "pace/part: ",
                name, "\n  ports:\n    - name: main\n      port: ", port, "\n");
}

std::string Resources(const LaunchPlan& plan, int64_t num_gpus, int64_t num_processes) {
  const int64_t cpus = plan.settings.launch.cpus * num_processes;
  if (!plan.OnGpus() && cpus == 0) return "resources: {}\n";
  std::string text = "resources:\n";
  if (cpus > 0) text += Concat("  requests:\n    cpu: ", Quoted(Concat(cpus)), "\n");
  if (plan.OnGpus()) text += Concat("  limits:\n    nvidia.com/gpu: ", num_gpus, "\n");
  return text;
}

std::string TokenVariable(const LaunchPlan& plan, std::string_view name) {
  return Concat("  - name: ", name,
                "\n    valueFrom:\n      secretKeyRef:\n        name: ", plan.settings.launch.name,
                "-token\n        key: token\n");
}

constexpr char kMounts[] = R"(volumeMounts:
  - name: shared
    mountPath: )";
constexpr char kMoreMounts[] = R"(  - name: settings
    mountPath: /etc/pace
    readOnly: true
  - name: memory
    mountPath: /dev/shm
)";

std::string Volumes(const LaunchPlan& plan) {
  return Concat("volumes:\n  - name: shared\n    persistentVolumeClaim:\n      claimName: ",
                Quoted(plan.settings.launch.volume),
                "\n  - name: settings\n    configMap:\n      name: ", plan.settings.launch.name,
                "-settings\n  - name: memory\n    emptyDir:\n      medium: Memory\n");
}

std::string Command(const std::vector<Word>& words) {
  std::string text = "command:\n";
  for (const Word& word : words) text += Concat("  - ", Quoted(word.text), "\n");
  return text;
}

// One container and what it mounts.
struct Container {
  std::string name;
  std::string image;
  std::vector<Word> words;
  std::string environment;
  std::string resources;
  std::string more = {};
};

std::string PodSpec(const LaunchPlan& plan, const Container& container,
                    std::string_view restart_policy) {
  const std::string fields =
      Concat("name: ", container.name, "\nimage: ", Quoted(container.image),
             "\nworkingDir: ", Quoted(plan.folder), "\n", Command(container.words), "env:\n",
             container.environment, container.more, container.resources, kMounts,
             Quoted(plan.folder), "\n", kMoreMounts);
  std::string indented = Lines("    ", fields);
  indented[2] = '-';  // the item of a list
  return Concat("restartPolicy: ", restart_policy, "\ncontainers:\n", indented, Volumes(plan));
}

std::string Template(const std::string& part, const std::string& spec) {
  return Concat("  template:\n    metadata:\n      labels:\n        pace/part: ", part,
                "\n    spec:\n", Lines("      ", spec));
}

std::string Engines(const LaunchPlan& plan) {
  const LaunchOptions& launch = plan.settings.launch;
  const std::string name = launch.name + "-engine";
  const EngineCommand command = EngineCommandOf(plan, "0.0.0.0", launch.port, "$(PACE_API_KEY)");
  std::string environment;
  for (const std::string& variable : command.environment) {
    const size_t equals = variable.find('=');
    environment += Concat("  - name: ", variable.substr(0, equals),
                          "\n    value: ", Quoted(variable.substr(equals + 1)), "\n");
  }
  environment += TokenVariable(plan, command.token_variable);
  const Container container = {
      .name = "engine",
      .image = launch.engine_image.empty() ? launch.image : launch.engine_image,
      .words = command.words,
      .environment = environment,
      .resources = Resources(plan, plan.settings.cluster.tensor_parallel, 1),
      .more = Concat("ports:\n  - name: main\n    containerPort: ", launch.port,
                     "\nreadinessProbe:\n  tcpSocket:\n    port: main\n")};
  return Concat(
      Service(plan, name, launch.port), Head("apps/v1", "StatefulSet", name, plan),
      "spec:\n  replicas: ", plan.placement.engines.size(), "\n  serviceName: ", name,
      "\n  podManagementPolicy: Parallel\n  selector:\n    matchLabels:\n      pace/part: ", name,
      "\n", Template(name, PodSpec(plan, container, "Always")));
}

std::string Trainer(const LaunchPlan& plan) {
  const LaunchOptions& launch = plan.settings.launch;
  const std::string name = launch.name + "-trainer";
  const int64_t pods = plan.placement.NumTrainerNodes();
  std::vector<Word> before;
  if (plan.NumRanks() > 1) {
    before = {{"torchrun"},
              {"--no-python"},
              {Concat("--nnodes=", pods)},
              {"--node-rank=\"$JOB_COMPLETION_INDEX\"", true},
              {Concat("--nproc-per-node=", plan.RanksPerNode())},
              {Concat("--master-addr=", name, "-0.", name)},
              {Concat("--master-port=", launch.master_port)}};
  }
  const std::string run = Concat(plan.folder, "/", launch.name, "/run");
  const auto line = [&](bool resumes) {
    std::vector<Word> words = before;
    const std::vector<Word> train = TrainWords(plan, "/etc/pace/run.yaml", run, resumes, "");
    words.insert(words.end(), train.begin(), train.end());
    return ShellLine(words);
  };
  // A pod that is started again goes on from the newest checkpoint.
  const std::string script =
      Concat("if [ -e ", ShellQuoted(run + "/manifest.json"), " ]; then exec ", line(true),
             "; else exec ", line(false), "; fi");
  const Container container = {
      .name = "trainer",
      .image = launch.image,
      .words = {{"/bin/sh"}, {"-c"}, {script}},
      .environment = TokenVariable(plan, "PACE_ENGINE_TOKEN"),
      .resources = Resources(plan, plan.RanksPerNode(), plan.RanksPerNode())};
  return Concat(
      Service(plan, name, launch.master_port), Head("batch/v1", "Job", name, plan),
      "spec:\n  completionMode: Indexed\n  completions: ", pods, "\n  parallelism: ", pods,
      "\n  backoffLimit: ", launch.max_restarts * pods, "\n",
      Template(name, Concat("subdomain: ", name, "\n", PodSpec(plan, container, "OnFailure"))));
}

}  // namespace

std::string KubernetesObjects(const LaunchPlan& plan, const std::string& token) {
  const std::string& name = plan.settings.launch.name;
  return Concat("# Written by pace launch; docs/launch.md describes it.\n",
                Head("v1", "Secret", name + "-token", plan),
                "type: Opaque\nstringData:\n  token: ", Quoted(token), "\n",
                Head("v1", "ConfigMap", name + "-settings", plan), "data:\n  run.yaml: |\n",
                Lines("    ", ToYaml(plan.settings)), Engines(plan), Trainer(plan));
}

}  // namespace pace
