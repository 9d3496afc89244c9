// Simulations and sweeps.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bind/convert.h"
#include "bind/policies.h"
#include "record/run_writer.h"
#include "sim/simulation.h"
#include "sim/sweep.h"

namespace pace::python {
namespace {

using namespace nb::literals;

nb::dict TotalsOf(const SimTotals& totals) {
  nb::dict out;
  out["seconds"] = totals.time.count();
  out["num_steps"] = totals.num_steps;
  out["mean_step"] = totals.mean_step.count();
  out["time_per_trained_prompt"] = totals.time_per_trained_prompt.count();
  out["mean_waiting"] = totals.mean_waiting;
  out["mean_generation"] = totals.mean_generation;
  out["mean_occupancy_at_step"] = totals.mean_occupancy_at_step;
  out["rejected_share"] = totals.rejected_share;
  out["mean_budget"] = totals.mean_budget;
  out["gpu_seconds"] = totals.gpu_seconds;
  out["num_trained_groups"] = totals.num_trained_groups;
  out["num_tokens_generated"] = totals.num_tokens_generated;
  out["num_tokens_never_trained"] = totals.num_tokens_never_trained;
  out["num_tokens_in_pool"] = totals.num_tokens_in_pool;
  out["untrained_share"] = totals.UntrainedShare();
  out["num_interrupted"] = totals.num_interrupted;
  out["num_preempted"] = totals.num_preempted;
  out["num_lost_workers"] = totals.num_lost_workers;
  out["engine_utilisation"] = totals.engine_utilisation;
  out["trainer_utilisation"] = totals.trainer_utilisation;
  out["num_events"] = totals.num_events;
  return out;
}

// Called without the GIL; an exception of Python's passes through.
std::function<void(int64_t, int64_t)> ProgressOf(const nb::object& callback) {
  if (callback.is_none()) return {};
  return [callback](int64_t done, int64_t all) {
    const nb::gil_scoped_acquire gil;
    callback(done, all);
  };
}

nb::object Simulate(const Settings& settings, const nb::object& admission, const nb::object& supply,
                    const std::optional<std::string>& record, const std::string& name,
                    const nb::object& progress) {
  Check(settings.Validate());
  SimOptions options;
  options.progress = ProgressOf(progress);
  if (!admission.is_none()) {
    options.admission = [&admission] {
      const nb::gil_scoped_acquire gil;
      return AdmissionFromPython(admission);
    };
  }
  if (!supply.is_none()) {
    options.supply = [&supply] {
      const nb::gil_scoped_acquire gil;
      return SupplyFromPython(supply);
    };
  }
  Result<SimResult> result = Status(StatusCode::kUnavailable, "not run");
  {
    const nb::gil_scoped_release no_gil;
    std::unique_ptr<RunWriter> writer;
    if (record.has_value()) {
      const int64_t num_responses =
          settings.run.num_steps * settings.batch.num_groups * settings.batch.group_size;
      writer = Take(RunWriter::Create(*record, settings, {name, "sim"},
                                      settings.record.Resolve(num_responses)));
      options.writer = writer.get();
    }
    result = RunSimulation(settings, options);
    if (result.ok() && writer != nullptr) Check(writer->Finish());
  }
  const SimResult values = Take(std::move(result));
  nb::list rows;
  for (const MetricsRow& row : values.rows) rows.append(DictOf(row));
  return nb::make_tuple(rows, TotalsOf(values.totals));
}

nb::object Sweep(const Settings& settings, const std::vector<std::string>& axes, int64_t threads,
                 const nb::object& progress) {
  std::vector<SweepAxis> parsed;
  for (const std::string& axis : axes) parsed.push_back(Take(ParseSweepAxis(axis)));
  SweepOptions options{.num_threads = threads, .progress = ProgressOf(progress)};
  Result<SweepResult> result = Status(StatusCode::kUnavailable, "not run");
  {
    const nb::gil_scoped_release no_gil;
    result = RunSweep(settings, parsed, options);
  }
  const SweepResult sweep = Take(std::move(result));
  nb::list rows;
  for (const SweepRow& row : sweep.rows) {
    nb::dict out = TotalsOf(row.totals);
    out["assignments"] = row.assignments;
    out["on_front"] = row.on_front;
    rows.append(out);
  }
  return nb::make_tuple(rows, sweep.best, sweep.advice);
}

}  // namespace

void BindSimulator(nb::module_& module) {
  module.def("simulate", &Simulate, "settings"_a, "admission"_a = nb::none(),
             "supply"_a = nb::none(), "record"_a = nb::none(), "name"_a = "python",
             "progress"_a = nb::none());
  module.def("sweep", &Sweep, "settings"_a, "axes"_a, "threads"_a = 0, "progress"_a = nb::none());
}

}  // namespace pace::python
