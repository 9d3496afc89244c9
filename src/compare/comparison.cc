#include "compare/comparison.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>
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

// Of every evaluation.
bool HasProblems(const Cell& cell) {
  return std::ranges::none_of(cell.evaluations, [](const CellEvaluation& evaluation) {
    return evaluation.problems.empty();
  });
}

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
  bool Has(const CellId& id) PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::ranges::find(cells_, id, &Cell::id) != cells_.end();
  }
  size_t size() PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return cells_.size();
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

  const std::vector<CellId> order_;
  const bool wants_problems_;
  const std::string path_;
  Mutex mutex_;
  std::vector<Cell> cells_ PACE_GUARDED_BY(mutex_);
};

// Evaluations before the first step, each made once for all cells that have the same.
class FirstEvaluations {
 public:
  // Null where the cell's run makes its own. Waits for another cell that is making it.
  Result<const std::vector<BenchmarkScore>*> Of(const PlannedCell& cell) PACE_EXCLUDES(mutex_) {
    const std::vector<BenchmarkScore>* none = nullptr;
    if (!SharesFirstScores(cell.settings)) return none;
    Entry& entry = EntryOf(FirstScoresKey(cell.settings, *cell.policy));
    const MutexLock lock(entry.mutex);
    if (!entry.scores.has_value()) {
      PACE_ASSIGN_OR_RETURN(entry.scores, FirstScores(cell.settings, *cell.policy));
    }
    return &*entry.scores;
  }

 private:
  struct Entry {
    Mutex mutex;
    std::optional<std::vector<BenchmarkScore>> scores PACE_GUARDED_BY(mutex);  // never changes
  };

  Entry& EntryOf(const std::string& key) PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return entries_[key];
  }

  Mutex mutex_;
  std::map<std::string, Entry> entries_ PACE_GUARDED_BY(mutex_);
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

// What the run of `planned` would give, if it is among finished cells. On a GPU a run is not
// reproducible to the bit.
std::optional<Cell> TakeFinished(const PlannedCell& planned, const Experiment& experiment,
                                 std::span<const Cell> finished) {
  if (planned.settings.policy.device != PolicyDevice::kCpu) return std::nullopt;
  const auto found = std::ranges::find_if(finished, [&](const Cell& cell) {
    return cell.settings_digest == planned.digest && cell.id.seed == planned.id.seed &&
           (!experiment.keep_groups || !cell.groups.empty()) &&
           (!experiment.keep_problems || HasProblems(cell));
  });
  if (found == finished.end()) return std::nullopt;
  Cell cell = *found;
  cell.id = planned.id;
  if (!experiment.keep_groups) cell.groups.clear();
  if (experiment.keep_problems) return cell;
  for (CellEvaluation& evaluation : cell.evaluations) {
    evaluation.num_responses = 0;
    evaluation.pass.reset();
    evaluation.problems.clear();
  }
  return cell;
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
  ComparisonWork work{.kept = store.size()};
  std::vector<const PlannedCell*> to_run;
  for (const PlannedCell& cell : planned) {
    const bool wanted = options.only.empty() || std::find(options.only.begin(), options.only.end(),
                                                          cell.id) != options.only.end();
    if (!wanted || (!options.again && store.Has(cell.id, cell.digest))) continue;
    if (store.Has(cell.id)) --work.kept;
    std::optional<Cell> finished;
    if (!options.again) finished = TakeFinished(cell, experiment, options.finished);
    if (finished.has_value()) {
      store.Add(*std::move(finished));
      ++work.taken;
    } else {
      to_run.push_back(&cell);
    }
  }
  // Seeds first: what there is after a while compares all arms.
  std::stable_sort(to_run.begin(), to_run.end(), [](const PlannedCell* a, const PlannedCell* b) {
    return a->id.seed < b->id.seed;
  });
  work.to_run = to_run.size();
  if (options.begin) options.begin(work);
  if (work.taken > 0) PACE_RETURN_IF_ERROR(store.Save());
  FirstEvaluations first_evaluations;
  std::vector<Status> statuses(to_run.size());
  ForEachInParallel(to_run.size(), options.num_jobs, [&](size_t i) {
    if (options.stop && options.stop()) return;
    const auto progress = [&options, i](int64_t done, int64_t total) {
      if (options.progress) options.progress(i, done, total);
    };
    const auto first_scores = first_evaluations.Of(*to_run[i]);
    if (!first_scores.ok()) {
      statuses[i] = first_scores.status().At(Concat("arm ", to_run[i]->id.arm));
      return;
    }
    Result<Cell> cell = RunCell(to_run[i]->id, to_run[i]->settings, *to_run[i]->policy,
                                {.progress = progress,
                                 .keep_groups = experiment.keep_groups,
                                 .keep_problems = experiment.keep_problems,
                                 .first_scores = *first_scores});
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
