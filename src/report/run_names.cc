#include "report/run_names.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <set>

#include "config/methods.h"
#include "core/concat.h"
#include "report/figure.h"
#include "report/summary.h"

namespace pace {
namespace {

constexpr size_t kMostNameCharacters = 80;
constexpr size_t kMostDifferences = 2;

// "runs/t1/" -> "t1", and with more parts "runs/t1".
std::string EndOfPath(const std::string& path, int num_parts) {
  std::filesystem::path rest = std::filesystem::path(path).lexically_normal();
  if (!rest.has_filename()) rest = rest.parent_path();
  std::string out;
  for (int i = 0; i < num_parts && rest.has_filename(); ++i) {
    out = out.empty() ? rest.filename().string() : rest.filename().string() + "/" + out;
    rest = rest.parent_path();
  }
  return out == "." || out == ".." ? "" : out;
}

std::string NameOf(const RunData& run, int num_parts) {
  std::string name = EndOfPath(run.directory, num_parts);
  if (name.empty()) name = run.manifest.name;
  if (name.empty()) name = run.manifest.method.empty() ? "run" : run.manifest.method;
  return Shortened(MethodTitle(name), kMostNameCharacters);
}

bool IsMethod(std::string_view name) {
  return std::any_of(Methods().begin(), Methods().end(), [name](const Method& method) {
    const bool numbered = method.name.ends_with("-K");
    return method.name == name || (!method.alias.empty() && method.alias == name) ||
           (numbered && name.starts_with(method.name.substr(0, method.name.size() - 1)));
  });
}

// What decides the problems of the held-out set, but for its benchmarks.
std::vector<std::pair<std::string, std::string>> TaskFields(const Settings& settings) {
  Settings copy = settings;
  std::vector<std::pair<std::string, std::string>> fields;
  for (const Field& field : copy.task.Fields()) {
    // Diets of training, and names of files that tell themselves apart.
    if (field.key() == "benchmarks" || field.key() == "train_length_scale") continue;
    fields.emplace_back(field.key(), field.Get());
  }
  return fields;
}

// "list_sum", or where other runs have the same kind "list_sum, max_numbers 6".
std::string TaskWithDifferences(const std::vector<RunData>& runs, size_t index) {
  std::string out = TaskShown(runs[index]);
  const auto own = TaskFields(runs[index].settings);
  size_t count = 0;
  for (size_t field = 0; field < own.size(); ++field) {
    if (own[field].first == "kind" || own[field].first == "file") continue;
    const bool differs = std::any_of(runs.begin(), runs.end(), [&](const RunData& other) {
      return TaskShown(other) == TaskShown(runs[index]) &&
             TaskFields(other.settings)[field] != own[field];
    });
    if (differs && count++ < kMostDifferences) {
      out += Concat(", ", own[field].first, " ", own[field].second);
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> DisplayNames(const std::vector<RunData>& runs) {
  std::vector<std::string> names;
  for (const RunData& run : runs) names.push_back(NameOf(run, 1));
  const std::vector<std::string> first = names;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (std::count(first.begin(), first.end(), first[i]) > 1) names[i] = NameOf(runs[i], 2);
  }
  std::set<std::string> taken;
  for (std::string& name : names) {
    const std::string wanted = name;
    for (int i = 2; !taken.insert(name).second; ++i) name = Concat(wanted, " (", i, ")");
  }
  return names;
}

std::string MethodShown(const RunData& run) {
  const std::string& name = run.manifest.name;
  return MethodTitle(IsMethod(name) ? name : MethodLabel(run.settings));
}

std::string ModelShown(const RunData& run) {
  if (run.manifest.driver == "sim" || run.manifest.driver.empty()) return "";
  return Shortened(EndOfPath(run.settings.policy.model, 1), kMostNameCharacters);
}

std::string TaskShown(const RunData& run) {
  if (run.manifest.driver == "sim" || run.manifest.driver.empty()) return "";
  if (run.settings.task.kind == TaskKind::kDataset) {
    return Shortened(EndOfPath(run.settings.task.file, 1), kMostNameCharacters);
  }
  Settings copy = run.settings;
  for (const Field& field : copy.task.Fields()) {
    if (field.key() == "kind") return field.Get();
  }
  return "";
}

std::string MachineShown(const RunManifest& manifest) {
  std::string out = manifest.machine;
  const auto add = [&out](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (!manifest.device.empty()) add(manifest.device);
  if (manifest.threads > 0) {
    add(Concat(manifest.threads, manifest.threads == 1 ? " thread" : " threads"));
  }
  if (!manifest.torch.empty()) add(Concat("torch ", manifest.torch));
  return out;
}

std::string DateShown(const RunManifest& manifest) {
  if (manifest.start <= 0) return "";
  const auto seconds = static_cast<std::time_t>(manifest.start);
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "";
  std::array<char, 64> text{};
  if (std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts) == 0) return "";
  return text.data();
}

bool IsVirtual(const RunData& run) {
  return run.manifest.driver != "runtime";
}

bool IsReproducible(const RunData& run) {
  const std::string& determinism = run.manifest.determinism;
  // Means over runs of the lab do not say.
  const bool means = determinism.empty() && run.manifest.driver == "lab";
  return run.manifest.driver == "sim" || determinism == "bitwise" || means;
}

std::vector<std::vector<BenchmarkColumns>> BenchmarksOfRuns(const std::vector<RunData>& runs) {
  std::vector<std::vector<BenchmarkColumns>> columns;
  std::set<std::vector<std::pair<std::string, std::string>>> tasks;
  for (const RunData& run : runs) {
    columns.push_back(BenchmarksOf(run.evaluations));
    if (!columns.back().empty()) tasks.insert(TaskFields(run.settings));
  }
  if (tasks.size() < 2) return columns;
  // Files name their problems; `held_out` is another set for every task.
  for (size_t i = 0; i < runs.size(); ++i) {
    for (BenchmarkColumns& benchmark : columns[i]) {
      if (benchmark.name == "held_out") {
        benchmark.name = Concat("held_out of ", TaskWithDifferences(runs, i));
      }
    }
  }
  return columns;
}

}  // namespace pace
