#include "compare/comparison.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "core/atomic_file.h"
#include "core/mutex.h"
#include "core/parallel.h"
#include "core/printable.h"

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
  CellStore(const Experiment& experiment, std::string path)
      : order_(CellsOf(experiment)),
        wants_problems_(experiment.keep_problems),
        path_(std::move(path)) {}

  void Add(Cell cell) PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    Remove(cell.id);
    cells_.push_back(std::move(cell));
  }
  bool Has(const CellId& id, const std::string& digest) PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::any_of(cells_.begin(), cells_.end(), [&](const Cell& cell) {
      return cell.id == id && cell.settings_digest == digest &&
             (!wants_problems_ || HasProblems(cell));
    });
  }
  Status Save() PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path_));
    std::vector<Cell> all = Ordered();
    // Cells of other seeds or arms are of no use now, but were computed once.
    std::copy_if(cells_.begin(), cells_.end(), std::back_inserter(all), [this](const Cell& cell) {
      return std::find(order_.begin(), order_.end(), cell.id) == order_.end();
    });
    for (const Cell& cell : all) {
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

  // Of every evaluation.
  static bool HasProblems(const Cell& cell) {
    return std::ranges::none_of(cell.evaluations, [](const CellEvaluation& evaluation) {
      return evaluation.problems.empty();
    });
  }

  const std::vector<CellId> order_;
  const bool wants_problems_;
  const std::string path_;
  Mutex mutex_;
  std::vector<Cell> cells_ PACE_GUARDED_BY(mutex_);
};

Status CheckCell(const Experiment& experiment, const CellId& id) {
  if (experiment.FindArm(id.arm) == nullptr) {
    return NotFound("cell ", Printable(id.arm), ".", id.seed, ": ", experiment.name,
                    " has no such arm");
  }
  if (id.seed < experiment.first_seed || id.seed > experiment.last_seed()) {
    return NotFound("cell ", id.arm, ".", id.seed, ": the seeds of ", experiment.name, " are ",
                    experiment.first_seed, " to ", experiment.last_seed());
  }
  return Status::Ok();
}

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
    if (experiment.keep_problems && settings.evaluation.num_responses > kMaxProblemResponses) {
      return InvalidArgument("arm ", id.arm,
                             ": evaluation.num_responses = ", settings.evaluation.num_responses,
                             ": must be <= ", kMaxProblemResponses, " with `problems: true`");
    }
    std::string digest = DigestOf(settings, known->second);
    planned.push_back({id, std::move(settings), &known->second, std::move(digest)});
  }
  for (const CellId& id : options.only) PACE_RETURN_IF_ERROR(CheckCell(experiment, id));
  return planned;
}

}  // namespace

std::vector<CellId> CellsOf(const Experiment& experiment) {
  std::vector<CellId> out;
  for (const Arm& arm : experiment.arms) {
    for (int64_t seed = experiment.first_seed; seed <= experiment.last_seed(); ++seed) {
      out.push_back({arm.name, seed});
    }
  }
  return out;
}

Result<std::vector<Cell>> RunComparison(const Experiment& experiment,
                                        const ComparisonOptions& options) {
  Policies policies;
  PACE_ASSIGN_OR_RETURN(std::vector<PlannedCell> planned, Plan(experiment, options, policies));
  PACE_RETURN_IF_ERROR(CreateFolders(options.directory));
  const std::string path = Concat(options.directory, "/", kCellsFile);
  CellStore store(experiment, path);
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
                                {.progress = progress,
                                 .keep_groups = experiment.keep_groups,
                                 .keep_problems = experiment.keep_problems});
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
