#include "compare/comparison.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/atomic_file.h"
#include "core/mutex.h"
#include "core/parallel.h"

namespace pace {
namespace {

struct PlannedCell {
  CellId id;
  Settings settings;
  const Policy* policy;
  std::string digest;
};

// The cells that there are, and the file that holds them.
class CellStore {
 public:
  CellStore(std::vector<CellId> order, std::string path)
      : order_(std::move(order)), path_(std::move(path)) {}

  void Add(Cell cell) PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    Remove(cell.id);
    cells_.push_back(std::move(cell));
  }
  bool Has(const CellId& id, const std::string& digest) PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::any_of(cells_.begin(), cells_.end(), [&](const Cell& cell) {
      return cell.id == id && cell.settings_digest == digest;
    });
  }
  Status Save() PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path_));
    for (const Cell& cell : Ordered()) {
      PACE_RETURN_IF_ERROR(file.Append(CellToJson(cell) + "\n"));
    }
    return file.Commit();
  }
  std::vector<Cell> Cells() PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return Ordered();
  }

 private:
  void Remove(const CellId& id) PACE_REQUIRES(mutex_) {
    std::erase_if(cells_, [&](const Cell& cell) { return cell.id == id; });
  }
  std::vector<Cell> Ordered() PACE_REQUIRES(mutex_) {
    std::vector<Cell> out;
    for (const CellId& id : order_) {
      for (const Cell& cell : cells_) {
        if (cell.id == id) out.push_back(cell);
      }
    }
    return out;
  }

  const std::vector<CellId> order_;
  const std::string path_;
  Mutex mutex_;
  std::vector<Cell> cells_ PACE_GUARDED_BY(mutex_);
};

// By policy.model: arms may differ in it.
using Policies = std::map<std::string, Policy>;

Result<std::vector<PlannedCell>> Plan(const Experiment& experiment,
                                      const ComparisonOptions& options, Policies& policies) {
  std::vector<PlannedCell> planned;
  for (const CellId& id : CellsOf(experiment)) {
    PACE_ASSIGN_OR_RETURN(Settings settings, SettingsOf(experiment, id, options.overrides));
    auto known = policies.find(settings.policy.model);
    if (known == policies.end()) {
      Result<Policy> policy = LoadPolicy(settings.policy);
      if (!policy.ok()) return policy.status().At(Concat("arm ", id.arm));
      known = policies.emplace(settings.policy.model, std::move(policy).value()).first;
    }
    std::string digest = DigestOf(settings, known->second);
    planned.push_back({id, std::move(settings), &known->second, std::move(digest)});
  }
  for (const CellId& id : options.only) {
    const bool known = std::any_of(planned.begin(), planned.end(),
                                   [&](const PlannedCell& cell) { return cell.id == id; });
    if (!known) return NotFound("cell ", id.arm, ".", id.seed, ": not in ", experiment.name);
  }
  return planned;
}

}  // namespace

std::vector<CellId> CellsOf(const Experiment& experiment) {
  std::vector<CellId> out;
  for (const Arm& arm : experiment.arms) {
    for (int64_t seed = 1; seed <= experiment.num_seeds; ++seed) out.push_back({arm.name, seed});
  }
  return out;
}

Result<std::vector<Cell>> RunComparison(const Experiment& experiment,
                                        const ComparisonOptions& options) {
  Policies policies;
  PACE_ASSIGN_OR_RETURN(std::vector<PlannedCell> planned, Plan(experiment, options, policies));
  PACE_RETURN_IF_ERROR(CreateFolders(options.directory));
  const std::string path = Concat(options.directory, "/", kCellsFile);
  CellStore store(CellsOf(experiment), path);
  if (Files::Default().Exists(path)) {
    PACE_ASSIGN_OR_RETURN(std::vector<Cell> there, ReadCells(path));
    for (Cell& cell : there) store.Add(std::move(cell));
  }
  std::vector<const PlannedCell*> to_run;
  for (const PlannedCell& cell : planned) {
    const bool wanted = options.only.empty() || std::find(options.only.begin(), options.only.end(),
                                                          cell.id) != options.only.end();
    if (wanted && (options.again || !store.Has(cell.id, cell.digest))) to_run.push_back(&cell);
  }
  // Seeds first: what there is after a while compares all arms.
  std::stable_sort(to_run.begin(), to_run.end(), [](const PlannedCell* a, const PlannedCell* b) {
    return a->id.seed < b->id.seed;
  });
  if (options.begin) options.begin(to_run.size(), planned.size() - to_run.size());
  std::vector<Status> statuses(to_run.size());
  ForEachInParallel(to_run.size(), options.num_jobs, [&](size_t i) {
    if (options.stop && options.stop()) return;
    const auto progress = [&options, i](int64_t done, int64_t total) {
      if (options.progress) options.progress(i, done, total);
    };
    Result<Cell> cell = RunCell(to_run[i]->id, to_run[i]->settings, *to_run[i]->policy,
                                {.progress = progress, .keep_groups = experiment.keep_groups});
    if (!cell.ok()) {
      statuses[i] = cell.status();
      return;
    }
    store.Add(std::move(cell).value());
    statuses[i] = store.Save();
  });
  for (const Status& status : statuses) PACE_RETURN_IF_ERROR(status);
  return store.Cells();
}

}  // namespace pace
